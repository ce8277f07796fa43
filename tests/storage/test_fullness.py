"""Is a bucket counted when it may be full, and not at every write?"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

import pytest

from hansa.drivers.s3 import OpenStore
from hansa.identity import Caller
from hansa.kernel.errors import HansaError, Invalid, Temporary
from hansa.kernel.quota import QuotaSettings
from hansa.storage import Accounting, Contents, Fullness, Grants, StoreNews
from hansa.storage.contents import most_objects
from hansa.storage.fullness import words
from storage.furnished import Room

pytest_plugins = ("real.object_store",)


class Counting(Accounting):
    """Remembers how often it counted for real."""

    counted = 0

    async def _count(self, bucket: str) -> Contents:
        self.counted += 1
        return await super()._count(bucket)


class Failing(Accounting):
    """Counts until it is told how to fail."""

    fails: HansaError | None = None

    async def _count(self, bucket: str) -> Contents:
        if self.fails is not None:
            raise self.fails
        return await super()._count(bucket)


class Refused(Grants):
    """The store takes no word of ours until it is well."""

    well = False

    async def settle(self, uids: Iterable[str]) -> None:
        if not self.well:
            raise Temporary("the store does not answer")
        await super().settle(uids)


class Slow(Accounting):
    """Counts those that are shut only when they are let."""

    def __init__(self, room: Room, shut: set[str]) -> None:
        super().__init__(room.store, room.clock, room.register.owner_of)
        self.shut = shut
        self.let = asyncio.Event()
        self.begun: asyncio.Queue[str] = asyncio.Queue()

    async def _count(self, bucket: str) -> Contents:
        self.begun.put_nowait(bucket)
        if bucket in self.shut:
            await self.let.wait()
        return await super()._count(bucket)


@asynccontextmanager
async def working(fullness: Fullness) -> AsyncIterator[None]:
    task = asyncio.create_task(fullness.work())
    try:
        async with asyncio.timeout(30):
            yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_bucket_at_which_counting_fails_is_closed_until_it_works(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    await room.buckets.create(alice, name)
    accounting = Failing(object_store.store, room.clock, room.register.owner_of)
    fullness = Fullness(room.register, room.grants, room.quotas, accounting, every=60)
    accounting.fails = Invalid("an upload has no key")
    await fullness.sweep()
    assert room.register.full == {name}
    accounting.fails = None
    await fullness.sweep()
    assert room.register.full == set()
    await room.buckets.delete(alice, name)


@pytest.mark.parametrize("full", [False, True])
async def test_a_store_that_is_away_for_a_moment_neither_closes_nor_opens(
    room: Room, object_store: OpenStore, alice: Caller, name: str, full: bool
) -> None:
    await room.buckets.create(alice, name)
    accounting = Failing(object_store.store, room.clock, room.register.owner_of)
    fullness = Fullness(room.register, room.grants, room.quotas, accounting, every=60)
    await object_store.store.put(name, "k", b"x" * (2000 if full else 1))
    await fullness.sweep()
    before = set(room.register.full)
    assert bool(before) == full
    accounting.fails = Temporary("the store does not answer")
    await fullness.sweep()
    assert room.register.full == before
    await room.buckets.delete(alice, name)


async def test_news_are_added_up_until_the_limit_may_be_reached(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    """The limit is 1 KiB."""
    await room.buckets.create(alice, name)
    accounting = Counting(object_store.store, room.clock, room.register.owner_of)
    fullness = Fullness(room.register, room.grants, room.quotas, accounting, every=60)
    person = object_store.as_user(await room.people.keys(alice))
    try:
        await fullness.check(name)
        for number in range(9):
            await person.put(name, "same", b"x" * 100)  # overwritten: the sum says 900, the truth is 100
            fullness.heard(StoreNews(number, None, name, 100))
        assert not fullness.due
        fullness.heard(StoreNews(10, None, name, 200))
        assert fullness.due == {name}
        await fullness.check(name)
        assert accounting.counted == 2
        assert name not in room.register.full

        await person.put(name, "large", b"x" * 2000)
        fullness.heard(StoreNews(11, None, name, 2000))
        await fullness.check(name)
        assert room.register.full == {name}
        view = await room.buckets.get(alice, name)
        assert "the bucket is full" in view.closed
        fullness.heard(StoreNews(12, None, "nobodys-bucket", 10**9))  # is no matter of ours
        assert fullness.due == {name}
    finally:
        await person.close()
    await room.buckets.delete(alice, name)
    assert room.register.full == set()


async def test_objects_without_content_fill_a_bucket_too(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    await room.buckets.create(alice, name)
    accounting = Counting(object_store.store, room.clock, room.register.owner_of)
    fullness = Fullness(room.register, room.grants, room.quotas, accounting, every=60)
    await fullness.check(name)
    for number in range(most_objects(1024) - 1):
        fullness.heard(StoreNews(number, None, name, 0, 1))
    assert not fullness.due
    fullness.heard(StoreNews(10**6, None, name, 0, 1))
    assert fullness.due == {name}
    await room.buckets.delete(alice, name)


async def test_a_full_bucket_is_counted_again_only_when_something_went_or_its_limit_changed(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    await room.buckets.create(alice, name)
    accounting = Counting(object_store.store, room.clock, room.register.owner_of)
    fullness = Fullness(room.register, room.grants, room.quotas, accounting, every=60)
    await object_store.store.put(name, "large", b"x" * 2000)
    await fullness.check(name)
    assert room.register.full == {name}
    fullness.look()
    fullness.heard(StoreNews(1, None, name, 100, 1))  # an output of a job, say
    assert not fullness.due
    fullness.heard(StoreNews(2, None, name))
    assert fullness.due == {name}

    fullness.due.clear()
    room.quotas.adopt(QuotaSettings(storage_per_bucket="1500"))  # larger, and not enough
    fullness.look()
    assert not fullness.due
    room.quotas.adopt(QuotaSettings(storage_per_bucket="1Mi"))
    fullness.look()
    assert fullness.due == {name}
    await fullness.check(name)
    assert room.register.full == set()
    assert accounting.counted == 2

    fullness.due.clear()
    fullness.look()
    assert not fullness.due
    room.quotas.adopt(QuotaSettings(storage_per_bucket="1Ki"))
    fullness.look()
    assert fullness.due == {name}
    await room.buckets.delete(alice, name)


async def test_a_full_bucket_that_the_store_could_not_close_is_tried_again(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    await room.buckets.create(alice, name)
    await object_store.store.put(name, "large", b"x" * 2000)
    grants = Refused(object_store.users, room.register)
    fullness = Fullness(
        room.register, grants, room.quotas, Accounting(object_store.store, room.clock, room.register.owner_of), every=60
    )
    await fullness.sweep()
    fullness.look()
    assert fullness.due == {name}
    grants.well = True
    await fullness.sweep()
    fullness.due.clear()
    fullness.look()
    assert not fullness.due
    assert room.register.full == {name}
    await room.buckets.delete(alice, name)


async def test_where_the_store_tells_nothing_full_buckets_are_counted_at_each_look(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    await room.buckets.create(alice, name)
    accounting = Accounting(object_store.store, room.clock, room.register.owner_of)
    fullness = Fullness(room.register, room.grants, room.quotas, accounting, every=60, news=False)
    await object_store.store.put(name, "large", b"x" * 2000)
    await fullness.check(name)
    fullness.look()
    assert fullness.due == {name}
    await room.buckets.delete(alice, name)


async def test_what_is_written_during_a_count_is_not_forgotten(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    """The count may have passed the place already."""
    await room.buckets.create(alice, name)
    accounting = Slow(room, set())
    fullness = Fullness(room.register, room.grants, room.quotas, accounting, every=60)
    await fullness.check(name)
    accounting.shut.add(name)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fullness.check(name))
        for _ in range(2):
            await accounting.begun.get()
        fullness.heard(StoreNews(1, None, name, 1000, 1))
        accounting.let.set()
    assert not fullness.due
    fullness.heard(StoreNews(2, None, name, 100, 1))
    assert fullness.due == {name}
    await room.buckets.delete(alice, name)


async def test_whose_buckets_take_long_keeps_nobody_else_waiting(
    room: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str
) -> None:
    hers, his = [f"{name}-{number}" for number in range(3)], f"{name}-his"
    for bucket in hers:
        await room.buckets.create(alice, bucket)
    accounting = Slow(room, set(hers))
    fullness = Fullness(room.register, room.grants, room.quotas, accounting, every=60)
    async with working(fullness):
        for bucket in hers:
            fullness.heard(StoreNews(1, None, bucket, 1, 1))
        assert {await accounting.begun.get() for _ in range(2)} < set(hers)
        await room.buckets.create(bob, his)
        await object_store.store.put(his, "large", b"x" * 2000)
        fullness.heard(StoreNews(2, None, his, 2000, 1))
        for bucket in hers:
            fullness.heard(StoreNews(3, None, bucket, 1, 1))  # are being counted, or in line, and not twice
        assert await accounting.begun.get() == his  # before the third of hers
        while his not in room.register.full:
            await asyncio.sleep(0.01)
        accounting.let.set()
        assert await accounting.begun.get() in hers


async def test_a_full_bucket_from_which_much_goes_is_not_counted_without_pause(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    await room.buckets.create(alice, name)
    await object_store.store.put(name, "large", b"x" * 2000)
    accounting = Slow(room, {name})
    fullness = Fullness(room.register, room.grants, room.quotas, accounting, every=60)
    now = asyncio.get_running_loop().time
    async with working(fullness):
        fullness.heard(StoreNews(1, None, name, 2000, 1))
        await accounting.begun.get()
        fullness.heard(StoreNews(2, None, name))  # goes while it is counted
        await asyncio.sleep(0.5)  # so long it takes
        let = now()
        accounting.let.set()
        await accounting.begun.get()
        assert now() - let >= 4 * 0.5
        assert room.register.full == {name}


def test_how_many_objects_are_too_many() -> None:
    gib = 2**30
    assert not Contents(0, 9_999, True).fills(1024)
    assert Contents(0, 10_000, True).fills(1024)
    assert not Contents(0, 199_999, True).fills(gib)
    assert Contents(0, 200_000, True).fills(gib)
    assert Contents(0, 150_000, False).fills(gib)  # there are more, and nobody knows how large they are


def test_why_a_bucket_is_full_is_said_in_words() -> None:
    assert "holds 2Ki of 1Ki." in words(Contents(2048, 1, True), 1024)
    assert "holds 2Ki of 1Ki, 1Ki of it in unfinished uploads" in words(Contents(1024, 1, True, 1024), 1024)
    assert "holds 10000 objects, and with 1Ki at most 10000 may be kept" in words(Contents(0, 10_000, True), 1024)
    assert "holds 2Ki of 1Ki, 1Ki of it in names and metadata" in words(Contents(1024, 1, True, 0, 1024), 1024)
    assert "more metadata, than can be counted" in words(Contents(0, 1, False), 1024)
    assert "unfinished uploads cannot be counted" in words(Contents(0, 0, True, None), 1024)
