"""What goes wrong with one item of a loop, or with a loop, is written down once, and again if it went well meanwhile or
goes wrong another way. The very same words come back only after pauses that grow, so that who looks at the newest lines
learns of it too.

A loop calls `tell` where it catches what one item raised, whatever that was, and goes on to the next.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from hansa.kernel.errors import HansaError

_log = structlog.get_logger("hansa.loops")
_REMEMBERED = 10_000
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 3600.0


@dataclass(frozen=True, slots=True)
class _Said:
    why: str
    again_at: float
    pause: float


@dataclass(slots=True)
class Complaints:
    now: Callable[[], float] = time.monotonic
    _said: dict[str, _Said] = field(default_factory=dict)

    def tell(self, event: str, item: str, error: Exception, **facts: str) -> None:
        """A refusal is told in its own words; anything else is a defect, and told with where it was raised."""
        why = error.message if isinstance(error, HansaError) else f"{type(error).__name__}: {error}"
        before = self._said.pop(item, None)
        self._said[item] = said = _next(before, why, self.now())
        if said is not before:
            _write(event, error, facts)
        if len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]

    def passed(self, item: str) -> None:
        """It went well, or is gone."""
        self._said.pop(item, None)


def _next(before: _Said | None, why: str, now: float) -> _Said:
    """The same as before where there is nothing to say."""
    if before is None or before.why != why:
        return _Said(why, now + _FIRST_PAUSE, _FIRST_PAUSE)
    if now < before.again_at:
        return before
    pause = min(2 * before.pause, _LONGEST_PAUSE)
    return _Said(why, now + pause, pause)


def _write(event: str, error: Exception, facts: dict[str, str]) -> None:
    if isinstance(error, HansaError):
        hint = {"hint": error.hint} if error.hint else {}
        _log.warning(event, error=error.message, **hint, **facts)
    else:
        _log.error(event, exc_info=error, **facts)
