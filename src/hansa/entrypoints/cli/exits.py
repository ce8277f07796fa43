"""Which exit code tells a script what happened? Read by `app.py`, the help text and the reference page."""

from enum import IntEnum

from hansa.kernel.errors import HansaError, Kind


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    NOT_FOUND = 4
    CONFLICT = 5
    UNREACHABLE = 6


MEANING = {
    Exit.OK: "it worked",
    Exit.FAILED: "it failed",
    Exit.USAGE: "the command was not written correctly",
    Exit.REFUSED: "not signed in, or not allowed",
    Exit.NOT_FOUND: "there is no such thing",
    Exit.CONFLICT: "it contradicts what exists",
    Exit.UNREACHABLE: "the cluster is out of reach, or took too long",
}

_BY_KIND = {
    Kind.UNAUTHENTICATED: Exit.REFUSED,
    Kind.FORBIDDEN: Exit.REFUSED,
    Kind.NOT_FOUND: Exit.NOT_FOUND,
    Kind.CONFLICT: Exit.CONFLICT,
    Kind.UNAVAILABLE: Exit.UNREACHABLE,
    Kind.TOO_MANY: Exit.UNREACHABLE,
}


def of(error: HansaError) -> Exit:
    return _BY_KIND.get(error.kind, Exit.FAILED)


def of_all(errors: list[HansaError]) -> Exit:
    """One code for several failures: theirs if they agree, else plain failure."""
    codes = {of(error) for error in errors}
    if not codes:
        return Exit.OK
    return codes.pop() if len(codes) == 1 else Exit.FAILED
