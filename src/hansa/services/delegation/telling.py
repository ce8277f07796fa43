"""When is a member told again that a job of ours is over? With pauses that grow, and not for ever.

A member may be away, or say for long that it is not well. Whoever follows the jobs (`following`) has written down how
the job ended before the first telling; after a restart the job is found there as ended, and its member is told again.
"""

from dataclasses import dataclass

_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0  # seconds
_TELL_FOR = 3600.0  # seconds in which a member that is away may still hear that its job is over; receipts have an end


@dataclass(slots=True)
class Telling:
    """Of a job that has ended here, and whose member still has to hear that."""

    since: float  # when the job ended
    next: float  # when it is the turn of this member
    has_log: bool = False  # the log is here, or will never come: the member may forget it
    _pause: float = _FIRST_PAUSE

    def put_off(self, now: float) -> None:
        """This turn may be in vain, whatever comes of it."""
        self.next = now + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def enough(self, now: float) -> bool:
        """Whether the job ended so long ago that its member is told no more, whatever it would say."""
        return now - self.since >= _TELL_FOR
