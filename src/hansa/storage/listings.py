"""Pages of a bucket for people who wait for them. Few at once for each, so that nobody's buckets keep others waiting.

What is in a bucket decides how long the store takes to list it: few objects in very deep folders are enough for many
seconds. So each caller has some places, and each listing one short try.
"""

import asyncio
from weakref import WeakValueDictionary

from hansa.storage.errors import TooManyListings
from hansa.storage.ports import ObjectPage, ObjectStore

_OF_ONE_CALLER = 2
_PATIENCE = 10.0  # seconds that somebody waits for a place


class Listings:
    def __init__(self, store: ObjectStore, patience: float = _PATIENCE) -> None:
        self._store = store
        self._patience = patience
        self._callers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def page(self, uid: str, bucket: str, prefix: str = "", page: str = "") -> ObjectPage:
        places = self._callers.setdefault(uid, asyncio.Semaphore(_OF_ONE_CALLER))
        try:
            async with asyncio.timeout(self._patience):
                await places.acquire()
        except TimeoutError as error:
            raise TooManyListings(
                f"{_OF_ONE_CALLER} listings of buckets are under way for you already",
                hint="wait for their answers before you ask for more",
                retry_after=10,
            ) from error
        try:
            return await self._store.list(bucket, prefix, page, brief=True)
        finally:
            places.release()
