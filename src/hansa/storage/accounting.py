"""How much is in a bucket? Counted by listing, for a moment remembered, and never without bound.

S3 has no question for it. A count is as fresh as `_FRESH_SECONDS`; a very large bucket is counted in part and
says so.
"""

import asyncio
from dataclasses import dataclass

from hansa.kernel.clock import Clock
from hansa.kernel.errors import NotFound
from hansa.storage.ports import ObjectStore
from hansa.storage.turns import Turns

_FRESH_SECONDS = 15.0
_PAGE = 1000  # objects
_MOST_PAGES = 200
_FEW_OBJECTS = 10_000
_SMALLEST = 1024  # bytes that an object takes by itself, whatever is in it
_MOST_REMEMBERED = 10_000
_MOST_UPLOADS = 200
_BEYOND = 2**63


@dataclass(frozen=True, slots=True)
class Contents:
    size: int  # bytes
    objects: int
    complete: bool  # False: there is more than we were ready to count
    unfinished: int | None = 0  # bytes of large uploads under way or given up, which take room too; None: unknown

    def fills(self, limit: int) -> bool:
        """Whether a bucket with this limit takes nothing more. Objects without content take room too, and a bucket that
        cannot be counted cannot be held to its limit."""
        return self.held >= limit or self.objects >= most_objects(limit) or not self.complete

    @property
    def held(self) -> int:
        """What counts against a quota. Uploads that cannot be counted, which nobody needs, are more than any limit."""
        return _BEYOND if self.unfinished is None else self.size + self.unfinished


def most_objects(limit: int) -> int:
    """How many objects a bucket may hold that may hold `limit` bytes."""
    return min(_MOST_PAGES * _PAGE, max(_FEW_OBJECTS, limit // _SMALLEST))


class Accounting:
    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
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
        size = objects = 0
        page = ""
        for _ in range(_MOST_PAGES):
            try:
                listed = await self._store.list(bucket, page=page)
            except NotFound:
                return Contents(0, 0, True)
            size += sum(one.size for one in listed.objects)
            objects += len(listed.objects)
            page = listed.next_page
            if not page:
                break
        return Contents(size, objects, not page, await self._unfinished(bucket))

    async def _unfinished(self, bucket: str) -> int | None:
        try:
            return await self._store.unfinished(bucket, _MOST_UPLOADS)
        except NotFound:
            return 0
