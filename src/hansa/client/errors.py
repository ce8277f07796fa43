"""What can go wrong when a hub is asked? One tree, below `HubError`; every error has code, hint and status.

    HubError
      Unreachable        nothing answered
      TooSlow            no whole answer within the time limit
      Unexpected         something answered, but no hub of a version this client understands
      Refused            the hub said no, in its own words
        Invalid 400 · Unauthenticated 401 · Forbidden 403 · NotFound 404 · Conflict 409 · TooLarge 413
        Unavailable 429, 502, 503, 504 · Failed other 5xx

A refusal's `code` is the hub's own, such as `federation.no-such-cluster`; docs/reference/errors.md lists them.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from hansa.kernel.errors import HansaError, Kind

_PROBLEM = "/problems/"
_LONGEST = 1000  # characters of a stranger's words that are worth repeating


class HubError(HansaError):
    """The hub could not be asked, or did not do it."""

    code, kind = "client.error", Kind.INTERNAL

    def __init__(self, message: str, *, hint: str = "", status: int = 0, code: str = "", **facts: Any) -> None:
        super().__init__(message, hint=hint, **facts)
        self.status = status  # of the answer; 0 is none
        if code:
            vars(self)["code"] = code  # the class has a code for when the hub gives none; its own says more


class Unreachable(HubError):
    """The hub cannot be reached."""

    code, kind = "client.unreachable", Kind.UNAVAILABLE


class TooSlow(HubError):
    """The hub did not answer within the time limit."""

    code, kind = "client.too-slow", Kind.UNAVAILABLE


class Unexpected(HubError):
    """The answer is none this client understands."""

    code = "client.unexpected-answer"


class Refused(HubError):
    """The hub refused."""

    code = "client.refused"


class Invalid(Refused):
    """What was asked is not valid."""

    kind = Kind.INVALID


class Unauthenticated(Refused):
    """The credentials are missing or not accepted."""

    kind = Kind.UNAUTHENTICATED


class Forbidden(Refused):
    """The caller may not do this."""

    kind = Kind.FORBIDDEN


class NotFound(Refused):
    """There is no such thing."""

    kind = Kind.NOT_FOUND


class Conflict(Refused):
    """It contradicts what exists, or what somebody else did meanwhile."""

    kind = Kind.CONFLICT


class TooLarge(Refused):
    """It is larger than the hub accepts."""

    kind = Kind.TOO_LARGE


class Unavailable(Refused):
    """The hub, or a part of it, cannot do it now; trying again later can help."""

    kind = Kind.UNAVAILABLE

    retry_after: float = 1.0  # seconds, as the hub proposes


class Failed(Refused):
    """The hub failed."""

    kind = Kind.INTERNAL


_CLASSES: dict[int, type[Refused]] = {
    400: Invalid,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def refusal(status: int, headers: Mapping[str, str], body: bytes, hub: str) -> HubError:
    """The error an answer stands for, in the hub's own words where it gave some."""
    if 300 <= status < 400:
        target = headers.get("location", "elsewhere")
        return Unexpected(f"{hub} points to {target[:200]}", hint="use that address", status=status)
    problem = _problem(body)
    said = str(problem.pop("detail", "") or problem.get("title", ""))[:_LONGEST]
    if not said:
        said = f"{hub} answered {status}"
    hint = str(problem.pop("hint", "") or "")[:_LONGEST]
    kind = str(problem.pop("type", ""))
    code = kind.removeprefix(_PROBLEM) if kind.startswith(_PROBLEM) else ""
    facts = {name: value for name, value in problem.items() if name not in ("status", "title", "message", "code")}
    error = _CLASSES.get(status, Failed if status >= 500 else Refused)(
        said, hint=hint, status=status, code=code, **facts
    )
    if isinstance(error, Unavailable):
        error.retry_after = _seconds(headers.get("retry-after", ""))
    return error


def _problem(body: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _seconds(text: str) -> float:
    """`Retry-After` as a hub writes it; a proxy's date is as good as nothing."""
    return min(float(text), 3600.0) if text.isascii() and text.isdigit() else 1.0
