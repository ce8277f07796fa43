"""How much is in a bucket? Counted by the store's own books or else by listing, remembered for a while, and never
without bound.

S3 has no question for it, and a large bucket takes many seconds of this process. So there are few places for counting,
of which one owner's buckets take only some; a count is good for the longer, the longer it took; and nobody who waits
for an answer waits for the end of it. A very large bucket is counted in part and says so.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from hansa.kernel.clock import Clock
from hansa.kernel.errors import NotFound
from hansa.storage.contents import MOST_COUNTED, Contents
from hansa.storage.ports import BucketBooks, ObjectStore
from hansa.storage.turns import Turns

_AT_ONCE = 8
_OF_ONE_OWNER = 2  # at once: whose buckets take long to count keeps nobody else waiting
_GOOD_AT_LEAST = 15.0  # seconds
_GOOD_AT_MOST = 600.0
_GOOD_FOR = 20  # times as long as it took: at most a twentieth of the time is spent on one bucket
_PATIENCE = 5.0  # seconds that somebody waits for an answer
_PAGE = 1000  # objects
_MOST_REMEMBERED = 10_000
_MOST_UPLOADS = 200


@dataclass(frozen=True, slots=True)
class Count:
    """What was in a bucket when it was counted."""

    contents: Contents
    ended: float
    took: float  # seconds

    def good(self, now: float, at_least: float) -> bool:
        """Whether it will do, for somebody to whom one of `at_least` seconds ago always does."""
        return 0 <= now - self.ended < min(max(_GOOD_FOR * self.took, at_least), _GOOD_AT_MOST)


class Accounting:
    def __init__(
        self,
        store: ObjectStore,
        clock: Clock,
        owner_of: Callable[[str], str],
        books: BucketBooks | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        self._store = store
        self._patience = patience
        self._books = books
        self._clock = clock
        self._owner_of = owner_of
        self._counted: dict[str, Count] = {}
        self._kept: set[str] = set()  # being counted, and not forgotten since that began
        self._asked: dict[str, asyncio.Task[Contents]] = {}  # counts that somebody waited for, or still does
        self._turns = Turns()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._owners: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def of(self, bucket: str, *, good_for: float = _GOOD_AT_LEAST) -> Contents:
        """For as long as it takes; a count younger than `good_for` seconds will do. A missing bucket holds nothing."""
        if (known := self._good(bucket, good_for)) is not None:
            return known
        async with self._turns.hold([bucket]):  # of many who ask at once, one counts
            known = self._good(bucket, good_for)
            return known if known is not None else await self._in_line(bucket)

    async def afresh(self, bucket: str, begin: Callable[[], None] = lambda: None) -> Contents:
        """The same, whenever it was counted last; `begin` is called when there is a place for it."""
        async with self._turns.hold([bucket]):
            return await self._in_line(bucket, begin)

    async def soon(self, bucket: str) -> Contents | None:
        """For somebody who waits for the answer. A count that takes longer goes on without them, and the answer is what
        was counted last, however long ago; None if it never was."""
        return await self._by(asyncio.get_running_loop().time() + self._patience, bucket)

    async def together(self, buckets: Iterable[str]) -> Contents:
        """All of them, one after another, for somebody who waits. What was never counted is left out, and said so."""
        until = asyncio.get_running_loop().time() + self._patience
        found = [await self._by(until, bucket) for bucket in buckets]
        known = [one for one in found if one is not None]
        whole = len(known) == len(found) and all(one.complete for one in known)
        return Contents(sum(one.size for one in known), sum(one.objects for one in known), whole)

    def forget(self, bucket: str) -> None:
        self._counted.pop(bucket, None)
        self._kept.discard(bucket)

    async def close(self) -> None:
        for count in (under_way := list(self._asked.values())):
            count.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _by(self, until: float, bucket: str) -> Contents | None:
        if (known := self._good(bucket)) is not None:
            return known
        left = until - asyncio.get_running_loop().time()
        if left > 0:
            count = self._under_way(bucket)
            await asyncio.wait([count], timeout=left)
            if count.done() and not count.cancelled():
                return count.result()
        last = self._counted.get(bucket)
        return last.contents if last is not None else None

    def _good(self, bucket: str, at_least: float = _GOOD_AT_LEAST) -> Contents | None:
        last = self._counted.get(bucket)
        return last.contents if last is not None and last.good(self._clock.now(), at_least) else None

    def _under_way(self, bucket: str) -> asyncio.Task[Contents]:
        def ended(count: asyncio.Task[Contents]) -> None:
            if self._asked.get(bucket) is count:
                del self._asked[bucket]
            if not count.cancelled():
                count.exception()  # seen, also if everybody who waited has gone

        count = self._asked.get(bucket)
        if count is not None and not count.done():
            return count
        count = self._asked[bucket] = asyncio.create_task(self.of(bucket), name=f"count bucket {bucket}")
        count.add_done_callback(ended)
        return count

    async def _in_line(self, bucket: str, begin: Callable[[], None] = lambda: None) -> Contents:
        """Whoever calls it holds the bucket's turn."""
        of_owner = self._owners.setdefault(self._owner_of(bucket), asyncio.Semaphore(_OF_ONE_OWNER))
        now = asyncio.get_running_loop().time
        async with of_owner, self._places:
            begin()
            began = now()
            self._kept.add(bucket)
            try:
                contents = await self._count(bucket)
                if bucket in self._kept:
                    self._remember(bucket, Count(contents, self._clock.now(), now() - began))
            finally:
                self._kept.discard(bucket)
        return contents

    def _remember(self, bucket: str, count: Count) -> None:
        self._counted.pop(bucket, None)
        if len(self._counted) >= _MOST_REMEMBERED:
            del self._counted[next(iter(self._counted))]  # the oldest
        self._counted[bucket] = count

    async def _count(self, bucket: str) -> Contents:
        try:
            return await (self._books.contents(bucket) if self._books is not None else self._listed(bucket))
        except NotFound:
            return Contents(0, 0, True)

    async def _listed(self, bucket: str) -> Contents:
        size = objects = 0
        page = ""
        for _ in range(MOST_COUNTED // _PAGE):
            listed = await self._store.list(bucket, page=page)
            size += sum(one.size for one in listed.objects)
            objects += len(listed.objects)
            page = listed.next_page
            if not page:
                break
        return Contents(size, objects, not page, await self._store.unfinished(bucket, _MOST_UPLOADS))
