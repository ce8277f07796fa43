"""What happened last? The newest changes, in memory, so that they can be told when the database is away."""

from collections import deque
from collections.abc import Callable, Sequence

from hansa.messages.inventory import Change

_MOST = 500


class Recent:
    def __init__(self) -> None:
        self._changes: deque[Change] = deque(maxlen=_MOST)
        self._watchers: list[Callable[[Change], None]] = []

    def watch(self, tell: Callable[[Change], None]) -> None:
        """`tell` hears of every change that comes from now on; it must not wait."""
        self._watchers.append(tell)

    def learn(self, changes: Sequence[Change]) -> None:
        """Oldest first. What is known already is passed over: news may come twice."""
        for change in changes:
            if self._changes and change.id <= self._changes[-1].id:
                continue
            self._changes.append(change)
            for tell in self._watchers:
                tell(change)

    def newest(self, most: int) -> tuple[Change, ...]:
        """Oldest first, as in `FederationStatus`."""
        return tuple(self._changes)[-most:] if most > 0 else ()
