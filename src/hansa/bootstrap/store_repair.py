"""Is the object store as our records say? Made sure of at the start and after every restart of the embedded store, and
every few minutes where somebody else runs the store: it may be brought back from a copy, or tidied up. What was left
half-made, half-removed or untold, because the store was away or a bucket held very much, is finished in between."""

import asyncio
import contextlib
from typing import Protocol

import structlog

from hansa import storage

_log = structlog.get_logger("hansa")
_FINISH_EVERY = 15.0  # seconds
_CONVERGE_EVERY = 600.0  # seconds; it tells the store of all people and buckets


class Restarting(Protocol):
    """The store that we run ourselves."""

    starts: int

    async def restarted(self, seen: int = 0) -> int: ...


class StoreRepair:
    def __init__(
        self,
        embedded: Restarting | None,
        fullness: storage.Fullness,
        buckets: storage.Buckets,
        every: float = _FINISH_EVERY,
        converge_every: float = _CONVERGE_EVERY,
    ) -> None:
        self._embedded = embedded
        self._fullness = fullness
        self._buckets = buckets
        self._every = every
        self._converge_every = converge_every
        self._told_at = 0.0
        self._starts = -1
        self._since = 0.0  # when we noticed this start of the store; what was counted since then need not be again

    async def work(self) -> None:
        """Until cancelled, or until the store is away: whoever runs it begins again."""
        told = -1  # the start of the store that heard everything
        while True:
            starts = self._embedded.starts if self._embedded is not None else 0
            if starts != self._starts:
                self._starts, self._since = starts, asyncio.get_running_loop().time()
            if starts != told or self._is_due:
                await self._fullness.sweep(self._since)  # first: what is told below must not open a full bucket
                refused = await self._buckets.converge()
                told, self._told_at = starts, asyncio.get_running_loop().time()
            else:
                refused = await self._buckets.finish()
            for what in refused:
                _log.warning("the store refused", what=what)
            await self._wanted(starts)

    async def _wanted(self, seen: int) -> None:
        """Returns when the embedded store was started again, something was cut short, or all is to be told again."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._every):
                    if self._embedded is not None:
                        await self._embedded.restarted(seen)
                        return
                    await asyncio.Event().wait()
            if self._buckets.unfinished or self._is_due:
                return

    @property
    def _is_due(self) -> bool:
        return self._embedded is None and asyncio.get_running_loop().time() >= self._told_at + self._converge_every
