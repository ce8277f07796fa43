"""What a manager must not forget of its membership, written down change by change."""

import asyncio
from dataclasses import replace
from typing import Any

from hansa.federation.member.ports import Memory, Remembered


class Notebook:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._turn = asyncio.Lock()
        self.now = Remembered()

    async def load(self) -> None:
        self.now = await self._memory.load()

    async def change(self, **fields: Any) -> None:
        """Durable when it returns; true here only then."""
        async with self._turn:
            fresh = replace(self.now, **fields)
            if fresh != self.now:
                await self._memory.save(fresh)
                self.now = fresh
