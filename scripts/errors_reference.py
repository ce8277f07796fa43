"""Writes `docs/reference/errors.md` from the error classes; `--check` only says whether it is up to date.

Run it after adding an error; a test fails when the page is stale or a class says nothing about itself.
"""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import hansa
from hansa.entrypoints.cli import exits
from hansa.entrypoints.http.problems import STATUS
from hansa.kernel.errors import HansaError, Kind

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "errors.md"
_NOT_IMPORTED = "hansa.store.revisions."  # scripts of the database tool, which run when imported
_KINDS = {
    "invalid": "the request itself is wrong",
    "unauthenticated": "who asks is not known",
    "forbidden": "who asks may not do it",
    "not-found": "there is no such thing, or the caller may not know of it",
    "conflict": "it contradicts what exists",
    "too-large": "it is larger than accepted",
    "too-slow": "it did not arrive in time",
    "too-many": "it came too often; `Retry-After` says when to try again",
    "bad-gateway": "another system that had to take part failed",
    "unavailable": "a part is not there now; `Retry-After` says when to try again",
    "internal": "Hansa or a part of it failed",
}


def errors() -> list[type[HansaError]]:
    """Every error with a code of its own, by code."""
    for module in pkgutil.walk_packages(hansa.__path__, "hansa."):
        if not module.name.startswith(_NOT_IMPORTED):
            importlib.import_module(module.name)
    own = [error for error in _below(HansaError) if "code" in vars(error) and error.__module__.startswith("hansa.")]
    return sorted({HansaError, *own}, key=lambda error: (error.code, error.__qualname__))


def _below(error: type[HansaError]) -> Iterator[type[HansaError]]:
    for child in error.__subclasses__():
        yield child
        yield from _below(child)


def sentence(error: type[HansaError]) -> str:
    return " ".join((vars(error).get("__doc__") or "").split("\n\n")[0].split())


def render() -> str:
    """The whole page."""
    lines = [
        "# Errors",
        "",
        "<!-- Made by scripts/errors_reference.py from the error classes; change them, not this page. -->",
        "",
        "Every error has a code that never changes, a kind, a message, and mostly a hint on what to do next. The kind",
        "decides the status of an HTTP answer and the exit code of a command. Routes under `/v1` answer",
        "`application/problem+json` with the type `/problems/<code>`; OSCAR's routes answer the message as text.",
        "",
        "| kind | status | exit code | when |",
        "|---|---|---|---|",
    ]
    for kind in Kind:
        exit_code = exits.of(type("Example", (HansaError,), {"kind": kind})(""))
        lines.append(f"| {kind.value} | {STATUS[kind]} | {exit_code.value} | {_KINDS[kind.value]} |")
    for area, members in groupby(errors(), key=lambda error: error.code.partition(".")[0]):
        lines += ["", f"## {area}", "", "| code | status | meaning |", "|---|---|---|"]
        lines += [f"| `{error.code}` | {STATUS[error.kind]} | {sentence(error)} |" for error in members]
    return "\n".join(lines) + "\n"


def main() -> int:
    page = render()
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page:
        return 0
    print("docs/reference/errors.md is stale; run: python scripts/errors_reference.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
