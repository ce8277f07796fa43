"""The one tree of errors: what went wrong, in a stable code, with a hint on what to do next.

Rooms raise subclasses of `HansaError`; each door maps `Kind` to a status or an exit code. A driver translates
foreign exceptions at its border and says by `Temporary` whether trying again can help.
"""

from enum import Enum
from typing import Any, ClassVar


class Kind(Enum):
    """What sort of trouble it is, whatever door the caller came through."""

    INVALID = "invalid"  # the request itself is wrong
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    CONFLICT = "conflict"
    TOO_LARGE = "too-large"
    BAD_GATEWAY = "bad-gateway"  # another cluster or part behind us refused or failed
    TOO_SLOW = "too-slow"  # the caller, not we
    TOO_MANY = "too-many"  # the caller asked, or failed, too often; after a while it may again
    UNAVAILABLE = "unavailable"  # a part we need is not there now; trying again may help
    INTERNAL = "internal"


class HansaError(Exception):
    """Something Hansa could not do."""

    code: ClassVar[str] = "hansa.error"
    kind: ClassVar[Kind] = Kind.INTERNAL

    def __init__(self, message: str, *, hint: str = "", **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts


class Invalid(HansaError):
    """The request is not valid."""

    code, kind = "request.invalid", Kind.INVALID


class Unauthenticated(HansaError):
    """The credentials are missing or not accepted."""

    code, kind = "identity.unauthenticated", Kind.UNAUTHENTICATED


class Forbidden(HansaError):
    """The caller may not do this."""

    code, kind = "identity.forbidden", Kind.FORBIDDEN


class NotFound(HansaError):
    """There is no such thing, or the caller may not know of it."""

    code, kind = "request.not-found", Kind.NOT_FOUND


class Conflict(HansaError):
    """It contradicts what already exists."""

    code, kind = "request.conflict", Kind.CONFLICT


class TooLarge(HansaError):
    """The request is larger than this manager accepts."""

    code, kind = "request.too-large", Kind.TOO_LARGE


class Temporary(HansaError):
    """A part we depend on is not available now; trying again can help."""

    code, kind = "part.unavailable", Kind.UNAVAILABLE

    def __init__(self, message: str, *, hint: str = "", retry_after: float = 1.0, **facts: Any) -> None:
        super().__init__(message, hint=hint, **facts)
        self.retry_after = retry_after
