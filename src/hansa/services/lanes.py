"""Work that comes for many owners: each has a lane of their own, and whoever brings much waits for themselves alone.

`uploads` has one set of lanes for what the store tells, and one for folders to look through.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Lanes(Generic[T]):
    def __init__(self, tasks: asyncio.TaskGroup, work: Callable[[T], Awaitable[None]], most: float = math.inf) -> None:
        """At most `most` things wait in one lane. What `work` raises ends the task group."""
        self._tasks = tasks
        self._work = work
        self._most = most
        self._lanes: dict[str, dict[T, None]] = {}  # in order, and each thing once

    def put(self, owner: str, thing: T) -> bool:
        """False if the lane is full. What waits already need not wait twice; what is being worked on waits again."""
        lane = self._lanes.get(owner)
        if lane is None:
            lane = self._lanes[owner] = {}
            self._tasks.create_task(self._through(owner, lane), name=f"lane of {owner}")
        if len(lane) >= self._most and thing not in lane:
            return False
        lane[thing] = None
        return True

    async def _through(self, owner: str, lane: dict[T, None]) -> None:
        while lane:
            thing = next(iter(lane))
            del lane[thing]
            await self._work(thing)
        del self._lanes[owner]
