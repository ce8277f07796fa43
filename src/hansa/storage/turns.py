"""Who goes first? One at a time for each name, while different names do not wait for each other."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary


class Turns:
    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, names: Iterable[str]) -> AsyncIterator[None]:
        """All of these names at once; always taken in the same order, so nobody waits in a circle."""
        async with AsyncExitStack() as held:
            for name in sorted(set(names)):
                # The exit stack keeps the lock alive; without holders or waiters it is forgotten.
                await held.enter_async_context(self._locks.setdefault(name, asyncio.Lock()))
            yield
