"""Who waits for news of which cluster? Watches that end as soon as there is something to tell."""

import asyncio
from collections import defaultdict

_AT_ONCE, _PAUSE = 50, 0.1


class Waking:
    def __init__(self) -> None:
        self._waiting: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)

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
        for one in self._waiting.get(cluster, ()):
            if not one.done():
                one.set_result(None)

    def wake_all(self) -> None:
        for cluster in list(self._waiting):
            self.wake(cluster)

    def wake_in_turn(self) -> None:
        """All, but of thousands some at a time: to answer each takes a while, and heartbeats must not wait for it."""
        self._wake_some(list(self._waiting))

    def _wake_some(self, clusters: list[str]) -> None:
        for cluster in clusters[:_AT_ONCE]:
            self.wake(cluster)
        if len(clusters) > _AT_ONCE:
            asyncio.get_running_loop().call_later(_PAUSE, self._wake_some, clusters[_AT_ONCE:])
