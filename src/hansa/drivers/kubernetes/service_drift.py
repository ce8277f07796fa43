"""What did somebody else change in what we keep in Kubernetes, and do we put it right again? No I/O.

Two writers who both insist would go on for ever, so a service is repaired only a few times in a minute; what happens
to it beyond that is only told.
"""

from collections import deque
from dataclasses import dataclass

import structlog

from hansa.kernel.clock import Clock

_REPAIRS = 5
_WINDOW = 60.0  # seconds
_REMEMBERED = 100

_log = structlog.get_logger("hansa.kubernetes")


@dataclass(frozen=True, slots=True)
class Drift:
    service: str
    what: str
    at: float
    repaired: bool  # False: it was left as it is


class DriftBook:
    def __init__(self, clock: Clock, *, repairs: int = _REPAIRS) -> None:
        self._clock = clock
        self._repairs = repairs
        self._seen: deque[Drift] = deque(maxlen=_REMEMBERED)
        self._repaired: dict[str, deque[float]] = {}

    def may_repair(self, service: str) -> bool:
        """False if it was repaired too often lately. Counts."""
        now = self._clock.now()
        for name, times in list(self._repaired.items()):
            while times and times[0] <= now - _WINDOW:
                times.popleft()
            if not times:
                del self._repaired[name]
        done = self._repaired.setdefault(service, deque())
        if len(done) >= self._repairs:
            return False
        done.append(now)
        return True

    def note(self, service: str, what: str, *, repaired: bool) -> None:
        last = next((one for one in reversed(self._seen) if one.service == service), None)
        if last is not None and not repaired and (last.what, last.repaired) == (what, False):
            return  # told already
        self._seen.append(Drift(service, what, self._clock.now(), repaired))
        _log.warning("somebody changed what we keep of a service", service=service, what=what, repaired=repaired)

    def all(self) -> list[Drift]:
        """The latest ones, oldest first."""
        return list(self._seen)
