"""Which of a member's figures about the end of our job can be true? What our own clock and the job's own cores allow.

The rest is cut to that: a job cannot have ended before it was given away, nor have used more than its cores could do
since then. Times decide for how long a job is kept here, and processor time is added up per owner. Pure.
"""

from dataclasses import dataclass

from hansa.services.peers import AwayJob

_MILLI = 1000


@dataclass(frozen=True, slots=True)
class Ending:
    started: float
    finished: float
    cpu_seconds: float


def ending(told: AwayJob, *, given: float, now: float, millicores: int) -> Ending:
    """`given` is when the job left, by the clock that also says `now`."""
    finished = moment(told.finished, given, now)
    most = max(0.0, now - given) * millicores / _MILLI
    return Ending(moment(told.started, given, finished), finished, min(told.cpu_seconds, most))


def moment(told: float | None, earliest: float, latest: float) -> float:
    """The latest, if nothing was told."""
    return latest if told is None else min(max(told, earliest), latest)
