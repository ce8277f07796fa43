"""Which buckets hold as much as they may? To those the store lets nobody add, until there is room again.

People have keys of their own to the store and write past the manager, so a limit can only be noticed afterwards. The
store's news of writes are added up, and a bucket is counted as soon as the sum may have reached its limit. For stores
that tell no news there is a sweep over all buckets. What comes in between the writing and the noticing is what a bucket
can hold beyond its limit.
"""

import asyncio
import contextlib
from collections.abc import Iterable

import structlog

from hansa import resources
from hansa.kernel import quantities
from hansa.kernel.errors import HansaError, Invalid
from hansa.storage.accounting import Accounting
from hansa.storage.contents import Contents, most_objects
from hansa.storage.grants import Grants
from hansa.storage.ports import StoreNews
from hansa.storage.records import PUBLIC, Bucket
from hansa.storage.register import BucketRegister

_log = structlog.get_logger("hansa.storage")
_PAUSE = 0.5  # seconds: of many writes in one moment the bucket is counted once
_FULL_EVERY = 10.0  # seconds between looks at full buckets: an admin may have raised the limit
_AT_ONCE = 8


def limit_of(quotas: resources.Quotas, bucket: Bucket) -> int | None:
    """Bytes that the bucket may hold; None for no limit."""
    limits = quotas.enforced(bucket.owner)
    return limits.storage_per_bucket if limits is not None else None


def words(contents: Contents, limit: int) -> str:
    """Why nothing can be added to a full bucket, for its owner."""
    most = quantities.show_size(limit)
    if contents.unfinished is None:
        why = f"unfinished uploads cannot be counted (unreadable names, or too many), and {most} may be kept"
    elif contents.held < limit and not contents.complete:
        why = "it holds more objects, or more metadata, than can be counted"
    elif contents.held < limit:
        why = f"it holds {contents.objects} objects, and with {most} at most {most_objects(limit)} may be kept"
    else:
        why = f"it holds {quantities.show_size(contents.held)} of {most}"
        if contents.unfinished:
            why += f", {quantities.show_size(contents.unfinished)} of it in unfinished uploads"
        if contents.beside > limit // 8:  # otherwise nobody wonders
            why += f", {quantities.show_size(contents.beside)} of it in names and metadata"
    return f"the bucket is full: {why}. It can be read and emptied; with room again it takes new objects again"


class Fullness:
    def __init__(
        self,
        register: BucketRegister,
        grants: Grants,
        quotas: resources.Quotas,
        accounting: Accounting,
        every: float,
    ) -> None:
        """`every` is the number of seconds between sweeps."""
        self._register = register
        self._grants = grants
        self._quotas = quotas
        self._accounting = accounting
        self._every = every
        self._at_most: dict[str, tuple[int, int]] = {}  # bytes and objects: what was counted, and all that came since
        self.due: set[str] = set()  # to be counted now
        self._wake = asyncio.Event()

    def heard(self, news: StoreNews) -> None:
        """Quick: every change of the store comes this way."""
        bucket = self._register.get(news.changed)
        limit = limit_of(self._quotas, bucket) if bucket is not None else None
        if limit is None:
            return
        name = news.changed
        if name in self._register.full:
            wanted = not news.written  # something went
        else:
            known = self._at_most.get(name)
            if known is not None:
                self._at_most[name] = known = known[0] + news.written, known[1] + news.added
            wanted = known is None or known[0] >= limit or known[1] >= most_objects(limit)
        if wanted:
            self.due.add(name)
            self._wake.set()

    async def work(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        sweep_at, look_at = loop.time() + self._every, loop.time() + _FULL_EVERY
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(sweep_at, look_at)):
                    await self._wake.wait()
            self._wake.clear()
            if loop.time() >= look_at:
                self.due |= self._register.full
                look_at = loop.time() + _FULL_EVERY
            if loop.time() >= sweep_at:
                await self.sweep()
                sweep_at = loop.time() + self._every
            due, self.due = self.due, set()
            await self._check_all(due)
            await asyncio.sleep(_PAUSE)

    async def sweep(self) -> None:
        """Every bucket that has a limit, and those that had one."""
        limited = {one.name for one in self._register if limit_of(self._quotas, one) is not None}
        await self._check_all(limited | self._register.full)

    async def check(self, name: str) -> None:
        """Counts one bucket and has the store let people write, or not."""
        bucket = self._register.get(name)
        if bucket is None or bucket.phase != "ready":
            return
        limit = limit_of(self._quotas, bucket)
        contents = await self._counted(name) if limit is not None else None
        if contents is not None:
            self._at_most[name] = contents.held, contents.objects
        full = limit is not None and contents is not None and contents.fills(limit)
        before = name in self._register.full
        if full and not before:
            self._register.full.add(name)
            _log.warning("a bucket is full", bucket=name, owner=bucket.owner, held=contents and contents.held)
        elif before and not full:
            self._register.full.discard(name)
            _log.info("a bucket has room again", bucket=name)
        if full or before:  # costs nothing where the store knows already
            if bucket.visibility == PUBLIC:
                await self._grants.publish()
            await self._grants.settle((bucket.owner, *bucket.allowed_users))

    async def _counted(self, name: str) -> Contents:
        """A store that is away, or refuses us, says nothing of the bucket. But where counting itself fails, what is in
        the bucket must not be a way past its limit."""
        try:
            return await self._accounting.of(name, fresh=True)
        except Invalid as error:
            _log.warning("a bucket cannot be counted", bucket=name, error=error.message)
            return Contents(0, 0, complete=False)

    async def _check_all(self, names: Iterable[str]) -> None:
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(name: str) -> None:
            async with limit:
                try:
                    await self.check(name)
                except HansaError as error:
                    _log.info("a bucket could not be counted", bucket=name, error=error.message)
                    self._at_most.pop(name, None)  # the next write has it counted, and so does the sweep
                    if name in self._register.full:
                        self.due.add(name)

        await asyncio.gather(*map(one, names))
        for gone in [name for name in self._at_most if self._register.get(name) is None]:
            del self._at_most[gone]
