"""What is written down of calls? Of `/job` and `/run` each one, until its caller made very many of them on one
day; what comes beyond is counted by the hour. Calls of exposed services are counted by the minute. So what is kept
grows with time and with people, not with the number of calls. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hansa.resources.usage import Invocation

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0


class CallNotes:
    """Those that wait to be written down; a flood is cut off rather than kept in memory."""

    def __init__(self, most_a_day: int = 2000, most_waiting: int = 100_000) -> None:
        self._most_a_day = most_a_day
        self._most_waiting = most_waiting
        self._each: list[Invocation] = []
        self._counted: Counter[Invocation] = Counter()
        self._day = 0.0
        self._today: Counter[str] = Counter()  # by caller

    def __bool__(self) -> bool:
        return bool(self._each or self._counted)

    def has_own_row(self, call: Invocation) -> bool:
        """Whether it is to be written down for itself: one of the few that its caller has on a day."""
        day = call.at // _DAY
        if day != self._day:
            self._day = day
            self._today.clear()
        if self._today[call.user] >= self._most_a_day:
            return False
        self._today[call.user] += 1
        return True

    def add(self, call: Invocation) -> None:
        if not self.has_own_row(call):
            self.count(call)
        elif len(self._each) < self._most_waiting:
            self._each.append(call)

    def count(self, call: Invocation) -> None:
        """One more of the same within an hour."""
        self._count(replace(call, at=call.at // _HOUR * _HOUR, latency=0.0, client_ip=""))

    def count_exposed(self, service: str, now: float) -> None:
        self._count(Invocation(now // _MINUTE * _MINUTE, "exposed", service, "", 0, 0.0, "", "", ""))

    def _count(self, kind: Invocation) -> None:
        if kind in self._counted or len(self._counted) < self._most_waiting:
            self._counted[kind] += 1

    def take(self, most: int) -> tuple[Sequence[Invocation], Mapping[Invocation, int]]:
        """The next to be written down: at most so many of either."""
        each, self._each = self._each[:most], self._each[most:]
        kinds = [kind for kind, _ in zip(self._counted, range(most), strict=False)]
        return each, {kind: self._counted.pop(kind) for kind in kinds}

    def put_back(self, each: Sequence[Invocation], counted: Mapping[Invocation, int]) -> None:
        self._each = [*each, *self._each]
        self._counted.update(counted)
