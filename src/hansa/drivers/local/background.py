"""Who owns a host's tasks? A named set that logs a failure and is ended as a whole when the host is closed.

Not a task group: one failing service must not end its neighbours.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class Background:
    """Tasks that live as long as their host."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self, seconds: float = 5.0) -> None:
        """Lets them come to their end, for a while."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=seconds)
        await self.close()

    async def close(self) -> None:
        """Cancels them all and waits for their last words."""
        while tasks := list(self._tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", task=task.get_name(), exc_info=error)
