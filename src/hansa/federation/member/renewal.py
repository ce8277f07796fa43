"""When is a certificate renewed, and when does it become a worry? After half its life; after three quarters. Pure."""

import random
from dataclasses import dataclass, field

from hansa.federation.member.ports import Held
from hansa.kernel import clock

_DUE, _SPREAD = 0.5, 0.1  # shares of its life
_WORRY = 0.75
_RETRY_SHARE, _SOONEST, _LATEST = 0.02, 1.0, 300.0
_MOST_IN_SILENCE = 2  # failures; a hub that restarts is no news


@dataclass(slots=True)
class Renewal:
    chance: random.Random = field(default_factory=random.SystemRandom)
    _of: float = 0.0  # the certificate the draw is for
    _draw: float = 0.0
    _failures: int = 0
    _next_try: float = 0.0
    _why: str = ""

    def due(self, held: Held, now: float, *, told: bool) -> bool:
        if now < self._next_try <= now + _LATEST:  # further away it is a clock that was set back
            return False
        if self._of != held.issued:
            self._of, self._draw = held.issued, self.chance.random()
        return told or now >= held.issued + (held.until - held.issued) * (_DUE + _SPREAD * self._draw)

    def renewed(self) -> None:
        self._failures, self._next_try, self._why = 0, 0.0, ""

    def failed(self, held: Held, now: float, why: str) -> None:
        self._failures += 1
        self._why = why
        pause = min(_LATEST, max(_SOONEST, (held.until - held.issued) * _RETRY_SHARE))
        self._next_try = now + pause * (0.5 + 0.5 * self.chance.random())

    def worry(self, held: Held, now: float) -> str:
        """What the hub should know before it is too late, or ""."""
        if now >= held.until:
            return f"certificate: expired at {clock.rfc3339(held.until)}"
        late = now >= held.issued + (held.until - held.issued) * _WORRY
        if self._why and (late or self._failures > _MOST_IN_SILENCE):
            return f"certificate: good until {clock.rfc3339(held.until)}, and cannot be renewed: {self._why}"
        return ""
