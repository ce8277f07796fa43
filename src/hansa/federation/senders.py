"""Does more than one program report for a cluster? Then somebody has a copy of its key. Pure.

Every start of a manager sends with a mark of its own (`Heartbeat.run`), which is written down nowhere: one that comes
back after another was heard never stopped. Of managers that send no mark, and of copies of a whole machine, the numbers
tell: they only grow at one sender. A heartbeat that was overtaken on its way looks the same, and so may the next one
after it; so a few are not enough, and of numbers, which are overtaken more often, more are needed.

A thief does not know the mark of the manager that runs, but can report with one of its own. So a mark vouches for
somebody only if no other was heard for long.
"""

_FORMER = 8  # marks that are remembered
_IN_USE = 600.0  # seconds after it was last shown
_MOST_SHOWN = 32
CERTIFICATE = "certificate"  # a section of the hub's own: the serial of the certificate a cluster shows


class Senders:
    __slots__ = ("_back", "_former", "_less", "_shown", "alone_since", "is_first", "number", "run")

    def __init__(self) -> None:
        self.run: str | None = None  # of the last heartbeat
        self.number = 0
        self.alone_since = 0.0  # when no other mark was heard any more than the last one
        self.is_first = True  # no other was ever heard, as far as this process knows
        self._former: tuple[str, ...] = ()
        self._back = _Times(3, 3600.0)  # when a mark came back
        self._less = _Times(5, 600.0)  # when a number was not greater than the one before
        self._shown: dict[str, float] = {}  # certificates by their serials, and when each was last shown

    def heard(self, run: str, number: int, at: float) -> None:
        if run == self.run:
            if number <= self.number:
                self._less.add(at)
        else:
            self.alone_since = at
            if run in self._former:
                self._back.add(at)
            if self.run is not None:
                self.is_first = False
                self._former = (*(one for one in self._former if one != self.run), self.run)[-_FORMER:]
        self.run, self.number = run, number

    def also_heard(self, run: str, at: float) -> None:
        """By another process, before the last one that we heard."""
        if self.run is not None and run != self.run:
            self.is_first = False
            self.alone_since = max(self.alone_since, at)

    def showed(self, serial: str, at: float) -> None:
        self._shown.pop(serial, None)
        self._shown[serial] = at
        if len(self._shown) > _MOST_SHOWN:
            del self._shown[next(iter(self._shown))]

    def certificates(self, now: float) -> frozenset[str]:
        """Serials of those that were shown not long ago: a member shows one, and after a renewal only the newest."""
        return frozenset(serial for serial, at in self._shown.items() if now - at < _IN_USE)

    def several(self, now: float) -> bool:
        return self._back.enough(now) or self._less.enough(now)

    def is_late(self, run: str, number: int) -> bool:
        """Whether the same sender has said something newer already. Without a mark it cannot be told."""
        return run != "" and run == self.run and number < self.number


class _Times:
    """Whether something happened often enough in so many seconds."""

    __slots__ = ("_enough", "_seen", "_within")

    def __init__(self, enough: int, within: float) -> None:
        self._enough = enough
        self._within = within
        self._seen: tuple[float, ...] = ()

    def add(self, at: float) -> None:
        self._seen = (*self._seen, at)[-self._enough :]

    def enough(self, now: float) -> bool:
        return len(self._seen) == self._enough and now - self._seen[0] < self._within
