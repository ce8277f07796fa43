"""Which waiting job starts next? In order of acceptance, without over-committing the cluster or a user's quota.

A user who used up their quota waits without holding up the others; a job that does not fit into what is free now
holds up all behind it, so that a large job is never passed by for ever. One for which there will be no room by waiting,
because services that stay or other files have it, holds up nobody, and neither does one that is larger than its owner's
whole quota. Pure.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hansa.services.ports import Waiting


@dataclass(slots=True)
class Queue:
    """Pending jobs, one line for each owner; a ticket keeps the overall order."""

    # ordered dicts, for a plain one gets slow when its first key is taken again and again
    _lines: dict[str, OrderedDict[str, Waiting]] = field(default_factory=dict)
    _elsewhere: OrderedDict[str, Waiting] = field(default_factory=OrderedDict)
    _beyond: OrderedDict[str, Waiting] = field(default_factory=OrderedDict)
    _tickets: dict[str, int] = field(default_factory=dict)
    _paused: set[str] = field(default_factory=set)
    _ticket: int = 0

    def __len__(self) -> int:
        return len(self._tickets)

    def __contains__(self, name: str) -> bool:
        return name in self._tickets

    def add(self, waiting: Waiting, *, elsewhere: bool = False, beyond: bool = False) -> None:
        """`elsewhere`: too large for this cluster, it waits for a member to take it and holds nobody up. `beyond`: too
        large for its owner's quota, it waits for another quota (or a member) and holds up nobody, either."""
        if waiting.name in self._tickets:
            return
        self._ticket += 1
        self._tickets[waiting.name] = self._ticket
        if elsewhere or beyond:
            line = self._elsewhere if elsewhere else self._beyond
        else:
            line = self._lines.setdefault(waiting.owner, OrderedDict())
        line[waiting.name] = waiting

    def extend(self, many: Iterable[Waiting]) -> None:
        for waiting in many:
            self.add(waiting)

    def remove(self, name: str) -> bool:
        if self._tickets.pop(name, None) is None:
            return False
        if self._elsewhere.pop(name, None) is None and self._beyond.pop(name, None) is None:
            for owner, line in self._lines.items():
                if line.pop(name, None) is not None:
                    if not line:
                        del self._lines[owner]
                    break
        return True

    def get(self, name: str) -> Waiting | None:
        lines = self._every_line() if name in self._tickets else ()
        return next((line[name] for line in lines if name in line), None)

    def _every_line(self) -> tuple[OrderedDict[str, Waiting], ...]:
        return (*self._lines.values(), self._elsewhere, self._beyond)

    def ahead(self, name: str) -> int:
        """How many were accepted before it, and wait for this cluster as well."""
        mine = self._tickets[name]
        return sum(self._tickets[other] < mine for line in self._lines.values() for other in line)

    def only_elsewhere(self) -> list[Waiting]:
        return list(self._elsewhere.values())

    def pause(self, name: str) -> bool:
        """It keeps its place but is not taken; False if it does not wait (any more)."""
        if name not in self._tickets or name in self._paused:
            return False
        self._paused.add(name)
        return True

    def resume(self, name: str) -> None:
        self._paused.discard(name)

    def is_paused(self, name: str) -> bool:
        return name in self._paused

    def everything(self) -> list[Waiting]:
        """All that wait, in order."""
        found = [one for line in self._every_line() for one in line.values()]
        found.sort(key=lambda waiting: self._tickets[waiting.name])
        return found

    def snapshot(self) -> list[Waiting]:
        """All that wait and are not paused, in order."""
        return [waiting for waiting in self.everything() if waiting.name not in self._paused]

    def take(
        self,
        within_quota: Callable[[Waiting], bool],
        hold: Callable[[Waiting], bool],
        in_the_way: Callable[[Waiting], bool] = lambda waiting: True,
    ) -> Waiting | None:
        """The next job to start, already held, or None if nothing can start now. One that cannot be held stands
        `in_the_way` of those behind it, or not."""
        heads = [
            head
            for line in self._lines.values()
            if (head := next((one for one in line.values() if one.name not in self._paused), None)) is not None
        ]
        for waiting in sorted(heads, key=lambda head: self._tickets[head.name]):
            if not within_quota(waiting):
                continue
            if not hold(waiting):
                if in_the_way(waiting):
                    return None
                continue
            self.remove(waiting.name)
            return waiting
        return None
