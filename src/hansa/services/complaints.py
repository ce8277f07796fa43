"""What goes wrong with one item of a loop is written down once, and again only after it went well or another way.

A loop calls `tell` where it catches what one item raised, whatever that was, and goes on to the next.
"""

from dataclasses import dataclass, field

import structlog

from hansa.kernel.errors import HansaError

_log = structlog.get_logger("hansa.loops")
_REMEMBERED = 10_000


@dataclass(slots=True)
class Complaints:
    _said: dict[str, str] = field(default_factory=dict)

    def tell(self, event: str, item: str, error: Exception, **facts: str) -> None:
        """A refusal is told in its own words; anything else is a defect, and told with where it was raised."""
        why = error.message if isinstance(error, HansaError) else f"{type(error).__name__}: {error}"
        if self._said.pop(item, None) != why:
            if isinstance(error, HansaError):
                _log.warning(event, error=why, **facts)
            else:
                _log.error(event, exc_info=error, **facts)
        self._said[item] = why
        if len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]

    def passed(self, item: str) -> None:
        """It went well, or is gone."""
        self._said.pop(item, None)
