"""Which buckets are going? Each is emptied and removed by a task of its own, so nobody has to wait for the end.

A bucket may hold very many objects, or some that the store finds hard to list. Whoever wants it removed waits for a
moment, in which nearly all of them go; the others go on without them. The rows in phase `deleting` say what is left
after a crash or a failure, and `Buckets.finish` begins again with those.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import structlog

from hansa.kernel.errors import HansaError, Temporary
from hansa.storage.turns import Turns

_log = structlog.get_logger("hansa.storage")
_PATIENCE = 15.0  # seconds


class Erasing:
    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._going: dict[str, asyncio.Task[None]] = {}
        self._turns = Turns()  # of an owner's buckets one goes at a time: they keep nobody else's waiting

    def __contains__(self, bucket: str) -> bool:
        return bucket in self._going

    def begin(self, bucket: str, owner: str, work: Callable[[], Awaitable[None]]) -> None:
        """Unless it is under way already."""
        if bucket not in self._going:
            going = asyncio.create_task(self._in_line(owner, work), name=f"erase bucket {bucket}")
            self._going[bucket] = going
            going.add_done_callback(lambda ended: self._ended(bucket, ended))

    async def wait(self, buckets: Iterable[str]) -> None:
        """Until they are gone, but for a moment at most. Raises what one of them failed with, if that comes first."""
        under_way = [self._going[bucket] for bucket in buckets if bucket in self._going]
        if under_way:
            done, _ = await asyncio.wait(under_way, timeout=self._patience, return_when=asyncio.FIRST_EXCEPTION)
            for one in done:
                one.result()

    async def close(self) -> None:
        for going in (under_way := list(self._going.values())):
            going.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _in_line(self, owner: str, work: Callable[[], Awaitable[None]]) -> None:
        async with self._turns.hold([owner]):
            await work()

    def _ended(self, bucket: str, going: asyncio.Task[None]) -> None:
        del self._going[bucket]
        error = None if going.cancelled() else going.exception()
        if isinstance(error, Temporary):
            _log.info("a bucket is not removed yet", bucket=bucket, error=error.message)
        elif isinstance(error, HansaError):
            _log.warning("a bucket could not be removed", bucket=bucket, error=error.message)
        elif error is not None:
            _log.error("a bucket could not be removed", bucket=bucket, exc_info=error)
