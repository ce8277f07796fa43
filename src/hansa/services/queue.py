"""Which waiting job starts next? In order of acceptance, without over-committing the cluster or a user's quota.

A user who used up their quota waits without holding up the others; a job that does not fit into what is free now
holds up all behind it, so that a large job is never passed by for ever. Pure.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hansa.services.ports import Waiting


@dataclass(slots=True)
class Queue:
    """Pending jobs, one line for each owner; a ticket keeps the overall order."""

    _lines: dict[str, deque[tuple[int, Waiting]]] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)
    _paused: set[str] = field(default_factory=set)
    _elsewhere: dict[str, Waiting] = field(default_factory=dict)
    _ticket: int = 0

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def add(self, waiting: Waiting, *, elsewhere: bool = False) -> None:
        """`elsewhere`: too large for this cluster, it waits for a member to take it and holds nobody up."""
        if waiting.name in self._known:
            return
        if elsewhere:
            self._elsewhere[waiting.name] = waiting
        self._ticket += 1
        self._known.add(waiting.name)
        self._lines.setdefault(waiting.owner, deque()).append((self._ticket, waiting))

    def extend(self, many: Iterable[Waiting]) -> None:
        for waiting in many:
            self.add(waiting)

    def remove(self, name: str) -> bool:
        """Forgotten lazily: the line skips it when its turn comes."""
        if name not in self._known:
            return False
        self._known.discard(name)
        self._elsewhere.pop(name, None)
        return True

    def only_elsewhere(self) -> list[Waiting]:
        return list(self._elsewhere.values())

    def pause(self, name: str) -> bool:
        """It keeps its place but is not taken; False if it does not wait (any more)."""
        if name not in self._known or name in self._paused:
            return False
        self._paused.add(name)
        return True

    def resume(self, name: str) -> None:
        self._paused.discard(name)

    def is_paused(self, name: str) -> bool:
        return name in self._paused

    def snapshot(self) -> list[Waiting]:
        """All that wait and are not paused, in order."""
        everything = [entry for line in self._lines.values() for entry in line]
        return [
            waiting
            for _, waiting in sorted(everything, key=lambda entry: entry[0])
            if waiting.name in self._known and waiting.name not in self._paused
        ]

    def take(self, within_quota: Callable[[Waiting], bool], hold: Callable[[Waiting], bool]) -> Waiting | None:
        """The next job to start, already held, or None if nothing can start now."""
        heads: list[tuple[int, Waiting]] = []
        for owner in list(self._lines):
            line = self._lines[owner]
            while line and line[0][1].name not in self._known:
                line.popleft()
            if not line:
                del self._lines[owner]
                continue
            if (head := next((entry for entry in line if self._may_be_taken(entry[1].name)), None)) is not None:
                heads.append(head)
        for _ticket, waiting in sorted(heads, key=lambda head: head[0]):
            if not within_quota(waiting):
                continue
            if not hold(waiting):
                return None
            self._known.discard(waiting.name)  # its entry goes when the line gets there
            return waiting
        return None

    def _may_be_taken(self, name: str) -> bool:
        return name in self._known and name not in self._paused and name not in self._elsewhere
