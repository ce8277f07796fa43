"""Whose buckets take long to list keeps nobody else waiting."""

import asyncio

import pytest

from hansa.drivers.s3 import OpenStore, S3Store
from hansa.storage import ObjectPage, TooManyListings
from hansa.storage.listings import Listings

pytest_plugins = ("real.object_store",)


class Slow(S3Store):
    """Lists nothing before it is let."""

    def __init__(self, opened: OpenStore) -> None:
        super().__init__(opened.store.address, opened.keys)
        self.let = asyncio.Event()
        self.begun: asyncio.Queue[str] = asyncio.Queue()

    async def list(
        self, bucket: str, prefix: str = "", page: str = "", limit: int = 1000, *, brief: bool = False
    ) -> ObjectPage:
        assert brief
        self.begun.put_nowait(bucket)
        await self.let.wait()
        return ObjectPage((), "")


async def test_each_caller_has_two_places(object_store: OpenStore) -> None:
    store = Slow(object_store)
    listings = Listings(store)
    try:
        async with asyncio.timeout(30), asyncio.TaskGroup() as asking:
            for number in range(24):
                asking.create_task(listings.page("mallory", f"hers-{number}"))
            asking.create_task(listings.page("alice", "another"))
            assert {await store.begun.get() for _ in range(3)} == {"hers-0", "hers-1", "another"}
            assert store.begun.empty()
            store.let.set()
        assert store.begun.qsize() == 22
    finally:
        await store.close()


async def test_who_waits_too_long_for_a_place_is_told_so(object_store: OpenStore) -> None:
    store = Slow(object_store)
    listings = Listings(store, patience=0.01)
    try:
        async with asyncio.TaskGroup() as asking:
            for number in range(2):
                asking.create_task(listings.page("mallory", f"hers-{number}"))
                await store.begun.get()
            with pytest.raises(TooManyListings):
                await listings.page("mallory", "hers-2")
            store.let.set()
        await listings.page("mallory", "hers-2")  # the places are free again
    finally:
        await store.close()
