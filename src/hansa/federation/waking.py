"""Who waits for news of which cluster? Watches that end as soon as there is something to tell."""

import asyncio
from collections import defaultdict


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
