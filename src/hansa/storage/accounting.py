"""How much is in a bucket? Counted by the store's own books or else by listing, for a moment remembered, and never
without bound.

S3 has no question for it. A count is as fresh as `_FRESH_SECONDS`; a very large bucket is counted in part and
says so.
"""

import asyncio

from hansa.kernel.clock import Clock
from hansa.kernel.errors import NotFound
from hansa.storage.contents import MOST_COUNTED, Contents
from hansa.storage.ports import BucketBooks, ObjectStore
from hansa.storage.turns import Turns

_FRESH_SECONDS = 15.0
_PAGE = 1000  # objects
_MOST_REMEMBERED = 10_000
_MOST_UPLOADS = 200


class Accounting:
    def __init__(self, store: ObjectStore, clock: Clock, books: BucketBooks | None = None) -> None:
        self._store = store
        self._books = books
        self._clock = clock
        self._counted: dict[str, tuple[float, Contents]] = {}
        self._turns = Turns()

    async def of(self, bucket: str, *, fresh: bool = False) -> Contents:
        """A missing bucket holds nothing."""
        async with self._turns.hold([bucket]):  # of many who ask at once, one counts
            at, contents = self._counted.get(bucket, (float("-inf"), None))
            if contents is None or fresh or not 0 <= self._clock.now() - at < _FRESH_SECONDS:
                contents = await self._count(bucket)
                if len(self._counted) >= _MOST_REMEMBERED:
                    self._counted.clear()
                self._counted[bucket] = (self._clock.now(), contents)
            return contents

    async def total(self, buckets: list[str]) -> int:
        return sum(contents.size for contents in await asyncio.gather(*map(self.of, buckets)))

    def forget(self, bucket: str) -> None:
        self._counted.pop(bucket, None)

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
