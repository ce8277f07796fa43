"""Is a cluster still there? Judged by its silence, with the reason in words.

One that reports steadily is suspected and given up after the missed heartbeats the settings say. One whose reports come
less steadily, over a slow link or from a busy machine, is given up to half as much time again, by what was seen of it.
Silence while the hub itself could not listen (it was stopped, or starved) is nobody's fault and is not counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

_MOST_STRETCH = 1.5
_ENOUGH = 5  # gaps needed before a cluster's own habit counts
_LATE = 0.25  # of a turn: later than this the hub was not listening


@dataclass(frozen=True, slots=True)
class Limits:
    every: float  # seconds between heartbeats
    suspect_after: int  # missed ones
    dead_after: int
    asked: float = 0.0  # how often clusters should report from now on, if that is more often than they do yet

    @property
    def pace(self) -> float:
        """What clusters are told."""
        return self.asked or self.every


@dataclass(frozen=True, slots=True)
class Liveness:
    kind: Literal["alive", "suspected", "dead"]
    reason: str = ""


ALIVE = Liveness("alive")


@dataclass(slots=True)
class Attention:
    """When was the hub itself not listening? Told by a loop that should come round every `turn` seconds."""

    turn: float
    began: float  # before this we heard nothing, whoever spoke
    _last: float = field(init=False)
    _deaf: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._last = self.began

    def come_round(self, now: float) -> None:
        if now - self._last > self.turn * (1 + _LATE):
            self._deaf.append((self._last + self.turn, now))
            del self._deaf[:-100]
        self._last = now

    def silence(self, since: float, now: float) -> float:
        """Seconds of the time since then in which something could have been heard."""
        since = max(since, self.began)
        deaf = sum(max(0.0, min(end, now) - max(start, since)) for start, end in self._deaf if end > since)
        return max(0.0, now - since - deaf)


def usual(gaps: Sequence[float], every: float) -> float:
    """How long this cluster usually takes between two reports: nearly the longest of its recent gaps."""
    if len(gaps) < _ENOUGH:
        return every
    ordered = sorted(gap for gap in gaps if gap < every * _MOST_STRETCH * 2)  # an outage is no habit
    if len(ordered) < _ENOUGH:
        return every
    return min(max(every, ordered[int(len(ordered) * 0.9)]), every * _MOST_STRETCH)


def judge(silence: float, gaps: Sequence[float], limits: Limits) -> Liveness:
    if silence <= limits.suspect_after * limits.every:
        return ALIVE
    unit = usual(gaps, limits.every)
    missed = int(silence / unit)
    if missed < limits.suspect_after:
        return ALIVE
    habit = "" if unit <= limits.every * 1.05 else f"; lately it reported every {unit:.1f} s"
    said = f"no heartbeat for {silence:.0f} s, {missed} missed of {limits.every:g} s{habit}"
    return Liveness("dead" if missed >= limits.dead_after else "suspected", said)
