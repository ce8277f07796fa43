"""Which buckets hold as much as they may? To those the store lets nobody add, until there is room again.

People have keys of their own to the store and write past the manager, so a limit can only be noticed afterwards. The
store's news of writes are added up, and a bucket is counted as soon as the sum may have reached its limit; a full one
when something went from it. For stores that tell no news there is a sweep over all buckets. What comes in between the
writing and the noticing is what a bucket can hold beyond its limit. `recounting.py` decides when to count again.
"""

import asyncio
import contextlib
from dataclasses import replace

import structlog

from hansa import resources
from hansa.kernel import quantities
from hansa.kernel.errors import HansaError, Invalid
from hansa.storage.accounting import Accounting
from hansa.storage.contents import UNCOUNTED, Contents, most_objects
from hansa.storage.grants import Grants
from hansa.storage.ports import StoreNews
from hansa.storage.records import PUBLIC, Bucket
from hansa.storage.recounting import Came, Counted, doubtful
from hansa.storage.register import BucketRegister

_log = structlog.get_logger("hansa.storage")
_PAUSE = 0.5  # seconds: of many writes in one moment the bucket is counted once
_LOOK_EVERY = 10.0  # seconds between looks at the limits: an admin may have changed them


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
        *,
        news: bool = True,
    ) -> None:
        """`every` is the number of seconds between sweeps; `news`, whether the store tells what changes (`heard`)."""
        self._register = register
        self._grants = grants
        self._quotas = quotas
        self._accounting = accounting
        self._every = every
        self._news = news
        self._counted: dict[str, Counted] = {}  # the last time
        self._came: dict[str, Came] = {}  # since that began
        self.due: set[str] = set()  # to be counted as soon as they have rested from the last time
        self._busy: set[str] = set()  # being counted, or in line
        self._wake = asyncio.Event()

    def heard(self, news: StoreNews) -> None:
        """Quick: every change of the store comes this way."""
        bucket = self._register.get(news.changed)
        limit = limit_of(self._quotas, bucket) if bucket is not None else None
        if limit is None:
            return
        name = news.changed
        self._came[name] = self._came.get(name, Came()).plus(news.written, news.added)
        shrank = name in self._register.full and not news.added  # something went, or became another
        if shrank or self._doubtful(name, limit):
            self.due.add(name)
            self._wake.set()

    async def work(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        sweep_at, look_at = loop.time() + self._every, loop.time() + _LOOK_EVERY
        async with asyncio.TaskGroup() as counts:
            while True:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(min(sweep_at, look_at, *map(self._rested, self.due - self._busy))):
                        await self._wake.wait()
                self._wake.clear()
                now = loop.time()
                if now >= look_at:
                    self.look()
                    look_at = now + _LOOK_EVERY
                if now >= sweep_at:
                    self.due |= {name for name in self._limited() if self._wants_sweep(name, now)}
                    sweep_at = now + self._every
                for name in [one for one in self.due - self._busy if now >= self._rested(one)]:
                    self.due.discard(name)
                    self._busy.add(name)
                    counts.create_task(self._work_off(name), name=f"count bucket {name}")
                await asyncio.sleep(_PAUSE)

    async def sweep(self, since: float = float("inf")) -> None:
        """Counts every bucket that has a limit, and those that had one, but for those that were counted since then."""
        await asyncio.gather(*(self._try(name) for name in self._limited() if not self._counted_since(name, since)))

    def look(self) -> None:
        """Compares what is known of each bucket with its limit as it is now."""
        for gone in [name for name in self._counted.keys() | self._came.keys() if self._register.get(name) is None]:
            self._counted.pop(gone, None)
            self._came.pop(gone, None)
        if not self._news:
            self.due |= self._register.full
        for name in self._counted.keys() | self._register.full:
            bucket = self._register.get(name)
            limit = limit_of(self._quotas, bucket) if bucket is not None else None
            if self._doubtful(name, limit) if limit is not None else name in self._register.full:
                self.due.add(name)

    async def check(self, name: str) -> None:
        """Counts one bucket and has the store let people write, or not."""
        bucket = self._register.get(name)
        if bucket is None or bucket.phase != "ready":
            return
        limit = limit_of(self._quotas, bucket)
        contents = await self._count(name) if limit is not None else None
        bucket = self._register.get(name)
        if bucket is None:  # removed meanwhile
            return
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

    async def _count(self, name: str) -> Contents:
        """A store that is away, or refuses us, says nothing of the bucket. But where counting itself fails, what is in
        the bucket must not be a way past its limit."""
        now = asyncio.get_running_loop().time
        began = now()
        contents: Contents | None = None

        def begin() -> None:
            nonlocal began
            began = now()
            self._came[name] = Came()  # what comes from now on is perhaps not in the count

        try:
            contents = await self._accounting.afresh(name, begin)
        except Invalid as error:
            _log.warning("a bucket cannot be counted", bucket=name, error=error.message)
            contents = UNCOUNTED
        finally:
            self._counted[name] = Counted(contents, now(), now() - began)
        return contents

    async def _try(self, name: str) -> None:
        try:
            await self.check(name)
        except HansaError as error:
            _log.info("a bucket could not be counted", bucket=name, error=error.message)
            if (counted := self._counted.get(name)) is not None:
                self._counted[name] = replace(counted, contents=None)  # the next look has it tried again

    async def _work_off(self, name: str) -> None:
        try:
            await self._try(name)
        finally:
            self._busy.discard(name)
            if name in self.due:
                self._wake.set()

    def _limited(self) -> set[str]:
        limited = {one.name for one in self._register if limit_of(self._quotas, one) is not None}
        return limited | self._register.full

    def _doubtful(self, name: str, limit: int) -> bool:
        counted = self._counted.get(name)
        contents = counted.contents if counted is not None else None
        return doubtful(contents, self._came.get(name, Came()), limit, name in self._register.full)

    def _counted_since(self, name: str, moment: float) -> bool:
        counted = self._counted.get(name)
        return counted is not None and counted.contents is not None and counted.ended - counted.took >= moment

    def _rested(self, name: str) -> float:
        counted = self._counted.get(name)
        return counted.rested(name in self._register.full) if counted is not None else 0.0

    def _wants_sweep(self, name: str, now: float) -> bool:
        counted = self._counted.get(name)
        return not self._news or counted is None or counted.stale(now)
