"""Who waits for news of which cluster? Watches that end as soon as there is something to tell.

What this process wrote is told only when everything before it was learned (`desired`), so whoever it wakes looks in
vain at first. `owed` are those that have to be woken once more then, by `again`.
"""

import asyncio
from collections import defaultdict

_AT_ONCE, _PAUSE = 50, 0.1


class Waking:
    def __init__(self) -> None:
        self._waiting: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)
        self._owed: set[str] = set()
        self.closed = False

    async def wait(self, cluster: str, seconds: float) -> None:
        """Returns when the cluster is woken, or after so many seconds."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[cluster].add(mine)
        try:
            async with asyncio.timeout(seconds):
                await mine
        except TimeoutError:
            pass
        finally:
            waiting = self._waiting[cluster]
            waiting.discard(mine)
            if not waiting:
                del self._waiting[cluster]

    def wake(self, cluster: str) -> None:
        self._owed.add(cluster)
        self._wake(cluster)

    def owed(self) -> set[str]:
        """Who was woken since this was last asked. To be asked before the database is: what they were woken for is
        in its answer then. Whoever asks owes it to them: `again`, or `owe` if there was no answer."""
        owed, self._owed = self._owed, set()
        return owed

    def owe(self, clusters: set[str]) -> None:
        self._owed |= clusters

    def again(self, clusters: set[str]) -> None:
        """And those that were woken since, of whom nobody knows yet whether it was in vain."""
        self._wake_some([cluster for cluster in clusters | self._owed if cluster in self._waiting])

    def close(self) -> None:
        """Nobody waits any more."""
        self.closed = True
        for cluster in list(self._waiting):
            self._wake(cluster)

    def _wake(self, cluster: str) -> None:
        for one in self._waiting.get(cluster, ()):
            if not one.done():
                one.set_result(None)

    def wake_in_turn(self) -> None:
        """All, but of thousands some at a time: to answer each takes a while, and heartbeats must not wait for it."""
        self._wake_some(list(self._waiting))

    def _wake_some(self, clusters: list[str]) -> None:
        for cluster in clusters[:_AT_ONCE]:
            self._wake(cluster)
        if len(clusters) > _AT_ONCE:
            asyncio.get_running_loop().call_later(_PAUSE, self._wake_some, clusters[_AT_ONCE:])
