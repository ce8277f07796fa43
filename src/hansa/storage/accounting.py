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
_MOST_PAGES = 200  # of a thousand objects each
_MOST_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Contents:
    size: int  # bytes
    objects: int
    complete: bool  # False: there is more than we were ready to count


class Accounting:
    def __init__(self, store: ObjectStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._counted: dict[str, tuple[float, Contents]] = {}
        self._turns = Turns()

    async def of(self, bucket: str) -> Contents:
        """A missing bucket holds nothing."""
        async with self._turns.hold([bucket]):  # of many who ask at once, one counts
            at, contents = self._counted.get(bucket, (float("-inf"), None))
            if contents is None or not 0 <= self._clock.now() - at < _FRESH_SECONDS:
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
                return Contents(size, objects, True)
        return Contents(size, objects, False)
