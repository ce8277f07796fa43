"""What is in a bucket is counted once for many who ask, few at a time, and again after a while."""

import asyncio

import pytest

from hansa.drivers.s3 import OpenStore
from hansa.identity import Caller
from hansa.storage import Accounting, Buckets, Contents, link_request
from hansa.storage.accounting import Count
from hansa.storage.errors import BucketBusy
from storage.furnished import HandClock, Room

pytest_plugins = ("real.object_store",)

SOON = 0.01  # seconds


class Books:
    """Every bucket holds three bytes, which take as long to count as the test wants."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self.at_once: set[str] = set()
        self.most = 0

    async def contents(self, bucket: str) -> Contents:
        assert bucket not in self.at_once
        self.at_once.add(bucket)
        self.most = max(self.most, len(self.at_once))
        self.begun.put_nowait(bucket)
        await self.let.wait()
        self.at_once.discard(bucket)
        return Contents(3, 1, True)


@pytest.fixture
def books() -> Books:
    return Books()


def accounting_with(books: Books, room: Room, patience: float = 30.0) -> Accounting:
    return Accounting(room.store, room.clock, lambda bucket: bucket.partition("-")[0], books, patience)


async def test_a_count_stays_for_a_moment(object_store: OpenStore, clock: HandClock, name: str) -> None:
    store = object_store.store
    accounting = Accounting(store, clock, lambda _: "alice")
    assert (await accounting.of(name)).size == 0  # a bucket that is not there
    accounting.forget(name)
    await store.create_bucket(name)
    try:
        await store.put(name, "a", b"123")
        counts = await asyncio.gather(*(accounting.of(name) for _ in range(10)))
        assert {(one.size, one.objects, one.complete) for one in counts} == {(3, 1, True)}
        await store.put(name, "b", b"45")
        assert (await accounting.of(name)).size == 3
        clock.moment += 600
        assert (await accounting.of(name, good_for=601)).size == 5  # no count is good for ever
        assert await accounting.together([name, name]) == Contents(10, 4, True)
    finally:
        await store.delete_bucket(name)


async def test_few_are_counted_at_once_whoever_asks(room: Room, books: Books) -> None:
    """Two of one owner, eight in all."""
    accounting = accounting_with(books, room)
    hers = [f"alice-{number}" for number in range(20)]
    others = [f"{number}-bucket" for number in range(20)]
    async with asyncio.TaskGroup() as asking:
        for bucket in hers:
            asking.create_task(accounting.of(bucket))
            asking.create_task(accounting.afresh(bucket))
            asking.create_task(accounting.soon(bucket))
        assert {await books.begun.get() for _ in range(2)} <= set(hers)
        for bucket in others:
            asking.create_task(accounting.of(bucket))
        assert {await books.begun.get() for _ in range(6)} <= set(others)
        books.let.set()
    assert books.most == 8


async def test_all_buckets_of_somebody_are_counted_one_after_another(room: Room, books: Books) -> None:
    books.let.set()
    accounting = accounting_with(books, room)
    assert await accounting.together(f"alice-{number}" for number in range(5)) == Contents(15, 5, True)
    assert books.most == 1


async def test_who_waits_gets_the_last_count_and_the_new_one_goes_on(room: Room, books: Books) -> None:
    accounting = accounting_with(books, room, patience=SOON)
    assert await accounting.soon("alice-b") is None
    assert await accounting.soon("alice-b") is None
    assert books.begun.qsize() == 1  # the second asker waited for the same count
    books.let.set()
    assert await accounting.of("alice-b") == await accounting.soon("alice-b") == Contents(3, 1, True)
    books.let.clear()
    room.clock.moment += 3600
    assert await accounting.soon("alice-b") == Contents(3, 1, True)
    assert books.begun.qsize() == 2
    await accounting.close()


async def test_all_together_wait_no_longer_than_one(room: Room, books: Books) -> None:
    accounting = accounting_with(books, room, patience=SOON)
    books.let.set()
    await accounting.of("alice-known")
    books.let.clear()
    assert await accounting.together(["alice-slow", "alice-known", "alice-other"]) == Contents(3, 1, False)
    assert [books.begun.get_nowait() for _ in range(books.begun.qsize())] == ["alice-known", "alice-slow"]
    await accounting.close()


async def test_a_bucket_that_went_while_it_was_counted_is_not_remembered(room: Room, books: Books) -> None:
    """The next of that name is another one."""
    accounting = accounting_with(books, room, patience=SOON)
    async with asyncio.TaskGroup() as asking:
        asking.create_task(accounting.of("alice-b"))
        await books.begun.get()
        accounting.forget("alice-b")
        books.let.set()
    books.let.clear()
    assert await accounting.soon("alice-b") is None
    await accounting.close()


async def test_a_bucket_that_takes_long_keeps_its_visitors_no_longer_than_others(
    room: Room, books: Books, alice: Caller, name: str
) -> None:
    accounting = accounting_with(books, room, patience=SOON)
    buckets = Buckets(room.register, room.store, room.grants, room.people, room.quotas, accounting, room.clock)
    await buckets.create(alice, name)
    upload = link_request("in/a.txt", "upload", 60)
    assert not (await buckets.get(alice, name)).contents.complete
    assert await buckets.stored(alice.uid) == 0
    with pytest.raises(BucketBusy):  # it may be full
        await buckets.link(alice, name, upload)
    assert books.begun.qsize() == 1
    books.let.set()
    await accounting.of(name)
    assert (await buckets.get(alice, name)).contents.size == await buckets.stored(alice.uid) == 3
    assert (await buckets.link(alice, name, upload)).url


def test_what_took_long_to_count_is_good_for_longer() -> None:
    quick, slow, endless = (Count(Contents(3, 1, True), 1000.0, took) for took in (0.1, 5.0, 120.0))
    assert [quick.good(1000.0 + after, at_least=15) for after in (-1, 14, 15)] == [False, True, False]
    assert [slow.good(1000.0 + after, at_least=15) for after in (-1, 99, 100)] == [False, True, False]
    assert [endless.good(1000.0 + after, at_least=15) for after in (599, 600)] == [True, False]
