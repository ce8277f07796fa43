"""Path and query parameters that several doors take: what the document says of them, and how a flag is read.

Names are checked by the rooms, which refuse them with a hint; the patterns here only tell clients the same rule.
"""

from typing import Annotated

from fastapi import Path, Query

from hansa.kernel.errors import Invalid

SERVICE_NAME = {"pattern": "^[a-z0-9]([a-z0-9-]{0,37}[a-z0-9])?$"}
_JOB_NAME = {"pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"}
_FLAG = {"enum": ["", "true", "false"]}
_PAGE = {"pattern": "^[0-9]{0,18}$"}
_TRUE, _FALSE = frozenset({"1", "t", "true"}), frozenset({"", "0", "f", "false"})  # as Go reads them

ServiceName = Annotated[str, Path(description="The service's name", json_schema_extra=SERVICE_NAME)]
JobName = Annotated[str, Path(description="The job's name", json_schema_extra=_JOB_NAME)]
JobsPage = Annotated[str, Query(description="`next_page` of the answer before", json_schema_extra=_PAGE)]
Timestamps = Annotated[str, Query(description="Whether each line begins with its time", json_schema_extra=_FLAG)]
Include = Annotated[str, Query(description="`deployment` adds the state of the service's process; else ignored")]
Tail = Annotated[
    str,
    Query(
        description="How many of the last lines, 1 to 1000 (less or more is taken as these); 200 if left out",
        json_schema_extra={"pattern": "^(-?[0-9]{1,9})?$"},
    ),
]
Flag = Annotated[str, Query(json_schema_extra=_FLAG)]


class BadParameter(Invalid):
    """A parameter of the address is not what this route expects."""

    code = "request.parameter-invalid"


def flag(name: str, text: str) -> bool:
    """A yes or no in the query; left out or empty is no."""
    given = text.strip().lower()
    if given not in _TRUE | _FALSE:
        raise BadParameter(f"parameter {name}: {text[:40]!r} is neither true nor false", hint="use true or false")
    return given in _TRUE


def tail(text: str) -> int:
    given = text.strip()
    digits = given.removeprefix("-")
    if not given:
        return 200
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise BadParameter(f"parameter tailLines: {text[:40]!r} is not a number", hint="use 1 to 1000")
    return min(max(int(given), 1), 1000)
