"""Is what was left half-done in the store finished, without all buckets being counted for it?"""

import asyncio
from typing import Any, cast

import pytest

from hansa.bootstrap.store_repair import StoreRepair
from hansa.drivers.s3 import OpenStore, StoreUnreachable
from hansa.identity import Caller
from hansa.kernel.errors import HansaError, Temporary
from hansa.storage import Accounting, Bucket, BucketBusy, Contents, Fullness, ObjectStore
from storage.conftest import alice, clock, database, name, room
from storage.furnished import Room

__all__ = ["alice", "clock", "database", "name", "room"]
pytest_plugins = ("real.object_store",)


class Embedded:
    """Has been started as often as the test says."""

    def __init__(self) -> None:
        self.starts = 1
        self.started = asyncio.Event()

    async def restarted(self, seen: int = 0) -> int:
        while self.starts <= seen:
            self.started.clear()
            await self.started.wait()
        return self.starts


class Stubborn:
    """The real store, of which a bucket goes at the third try."""

    def __init__(self, real: ObjectStore, error: Temporary) -> None:
        self._real = real
        self._error = error
        self._tries = 0
        self.gone = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def delete_bucket(self, bucket: str) -> None:
        self._tries += 1
        if self._tries < 3:
            raise self._error
        await self._real.delete_bucket(bucket)
        self.gone.set()


class Counting(Accounting):
    """Says what it counts."""

    counts: asyncio.Queue[str]

    async def _count(self, bucket: str) -> Contents:
        self.counts.put_nowait(bucket)
        return await super()._count(bucket)


async def again_and_again(repair: StoreRepair) -> None:
    while True:
        try:
            await repair.work()
        except Temporary:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("error", [BucketBusy("it is not empty yet"), StoreUnreachable("it was slow")])
async def test_a_half_removed_bucket_goes_and_no_other_is_counted_for_it(
    room: Room, object_store: OpenStore, alice: Caller, name: str, error: Temporary
) -> None:
    await room.buckets.create(alice, name)
    half_gone = Bucket(f"{name}-old", alice.uid, "", "private", (), "", "deleting", 1.0)
    await object_store.store.create_bucket(half_gone.name)
    await room.register.add([half_gone])
    store, embedded = Stubborn(object_store.store, error), Embedded()
    after = await room.restarted(cast(ObjectStore, store))
    accounting = Counting(after.store, after.clock, after.register.owner_of)
    accounting.counts = asyncio.Queue()
    fullness = Fullness(after.register, after.grants, after.quotas, accounting, every=60)
    repair = StoreRepair(embedded, fullness, after.buckets, every=0.01)
    working = asyncio.create_task(again_and_again(repair))
    try:
        async with asyncio.timeout(30):
            await store.gone.wait()
            assert [accounting.counts.get_nowait() for _ in range(accounting.counts.qsize())] == [name]
            embedded.starts += 1  # it may have come back with other things in it
            embedded.started.set()
            assert await accounting.counts.get() == name
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    room.register = after.register


async def test_a_store_that_somebody_else_runs_is_told_everything_again_and_again(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    """It may be brought back from a copy, or tidied up by hand, and nobody tells us."""
    await room.buckets.create(alice, name)
    keys = await room.people.keys(alice)
    accounting = Accounting(room.store, room.clock, room.register.owner_of)
    fullness = Fullness(room.register, room.grants, room.quotas, accounting, every=60)
    repair = StoreRepair(None, fullness, room.buckets, every=0.01, converge_every=0.05)
    await object_store.users.remove_user(keys.access_key)
    theirs = object_store.as_user(keys)
    working = asyncio.create_task(repair.work())
    try:
        for _ in range(2):
            async with asyncio.timeout(30):
                while not await may_write(theirs, name):
                    await asyncio.sleep(0.02)
            await object_store.users.remove_user(keys.access_key)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await theirs.close()


async def may_write(store: ObjectStore, bucket: str) -> bool:
    try:
        await store.put(bucket, "x", b"x")
    except HansaError:
        return False
    return True
