"""A bucket whose removal takes long, or fails, keeps nobody waiting and no right open."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from hansa.drivers.s3 import OpenStore, S3Store
from hansa.identity import Caller
from hansa.kernel.errors import Conflict, Forbidden, HansaError, NotFound, Temporary
from hansa.storage import BucketBusy, BucketQuota, Erasing
from storage.furnished import Away, Room

pytest_plugins = ("real.object_store",)

SOON = 0.01  # seconds
ADMIN = Caller.admin()


class Stuck(S3Store):
    """The session's store, which removes no bucket before it is let, and then fails if it has to."""

    def __init__(self, opened: OpenStore) -> None:
        super().__init__(opened.store.address, opened.keys)
        self.let = asyncio.Event()
        self.asked = 0
        self.fails: HansaError | None = None

    async def delete_bucket(self, bucket: str) -> None:
        self.asked += 1
        await self.let.wait()
        if self.fails is not None:
            raise self.fails
        await super().delete_bucket(bucket)


@pytest.fixture
async def stuck(object_store: OpenStore) -> AsyncIterator[Stuck]:
    made = Stuck(object_store)
    yield made
    await made.close()


@pytest.fixture
async def hasty(room: Room, stuck: Stuck) -> AsyncIterator[Room]:
    """The room with the stuck store, where nobody waits long."""
    made = replace(room, store=stuck, patience=SOON)
    yield made
    await made.buckets.close()
    room.register = made.register


async def gone(room: Room, name: str) -> None:
    async with asyncio.timeout(30):
        while room.buckets.exists(name):
            await room.buckets.finish()


async def test_who_deletes_a_bucket_does_not_wait_for_the_end(
    hasty: Room, stuck: Stuck, object_store: OpenStore, alice: Caller, name: str
) -> None:
    await hasty.buckets.create(alice, name)
    await hasty.buckets.delete(alice, name)
    assert await hasty.buckets.listing(alice) == []
    assert name in await object_store.store.buckets()
    await hasty.buckets.delete(alice, name)
    assert await hasty.buckets.finish() == []
    assert stuck.asked == 1  # one task, whoever asks
    stuck.let.set()
    await gone(hasty, name)
    assert name not in await object_store.store.buckets()
    with pytest.raises(NotFound):
        await hasty.buckets.delete(alice, name)


async def test_a_service_does_not_wait_for_its_buckets_to_be_emptied(
    hasty: Room, stuck: Stuck, alice: Caller, name: str
) -> None:
    made = [f"{name}-{number}" for number in range(2)]
    await hasty.buckets.make(made, owner=alice.uid, owner_name="Alice", service="gray")
    await hasty.buckets.remove_made(made, "gray", alice.uid)
    with pytest.raises(BucketBusy):
        await hasty.buckets.make(made, owner=alice.uid, owner_name="Alice", service="gray")
    stuck.let.set()
    for one in made:
        await gone(hasty, one)


async def test_rights_are_told_while_a_removal_is_stuck(
    hasty: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str
) -> None:
    """Also those that the store has to be told again."""
    his = object_store.as_user(await hasty.people.keys(bob))
    shared, public = f"{name}-shared", f"{name}-public"
    try:
        await hasty.buckets.create(alice, name)
        await hasty.buckets.create(alice, shared, "restricted", [bob.uid])
        await hasty.buckets.create(alice, public)
        await hasty.buckets.delete(alice, name)
        await object_store.users.grant(bob.uid, frozenset())
        assert await hasty.buckets.converge() == []
        await his.put(shared, "x", b"x")
        hasty.grants.forget()
        await hasty.buckets.update(alice, shared, "private")
        await hasty.buckets.update(alice, public, "public")
        with pytest.raises(Forbidden):
            await his.get(shared, "x")
        await his.put(public, "x", b"x")
    finally:
        await his.close()


async def test_one_bucket_that_fails_keeps_no_other_from_being_finished(
    hasty: Room, stuck: Stuck, object_store: OpenStore, alice: Caller, name: str
) -> None:
    first, last = f"{name}-a", f"{name}-z"
    stuck.let.set()
    await hasty.buckets.create(alice, first)
    await hasty.buckets.create(alice, last)
    for failure in (Conflict("locked"), Temporary("a listing that takes too long")):
        stuck.fails = failure
        with pytest.raises(type(failure)):
            await hasty.buckets.delete(alice, first)
        await object_store.store.delete_bucket(last)  # as if somebody had restored an old store
        await hasty.buckets.finish()
        assert last in await object_store.store.buckets()
    stuck.fails = None
    await gone(hasty, first)


async def test_a_store_that_is_away_ends_the_round(room: Room, away: Away, alice: Caller, name: str) -> None:
    await room.buckets.create(alice, name)
    cut_off = await room.restarted(away.store, away.users)
    with pytest.raises(Temporary):
        await cut_off.buckets.finish()


async def test_a_bucket_counts_until_it_is_gone(hasty: Room, stuck: Stuck, alice: Caller, name: str) -> None:
    for number in range(3):
        await hasty.buckets.create(alice, f"{name}-{number}")
    await hasty.buckets.delete(alice, f"{name}-0")
    assert hasty.buckets.count(alice.uid) == 3
    with pytest.raises(BucketQuota):
        await hasty.buckets.create(alice, f"{name}-more")
    stuck.let.set()
    await gone(hasty, f"{name}-0")
    await hasty.buckets.create(alice, f"{name}-more")


async def test_a_foreign_bucket_that_is_going_cannot_be_taken(
    hasty: Room, stuck: Stuck, object_store: OpenStore, name: str
) -> None:
    await object_store.store.create_bucket(name)
    await hasty.buckets.delete(ADMIN, name)
    with pytest.raises(BucketBusy):
        await hasty.buckets.create(ADMIN, name)
    stuck.let.set()
    async with asyncio.timeout(30):
        while name in await object_store.store.buckets():
            await asyncio.sleep(0)


async def test_of_one_owner_one_is_emptied_at_a_time() -> None:
    erasing, let = Erasing(), asyncio.Event()
    begun: asyncio.Queue[str] = asyncio.Queue()

    def begin(bucket: str, owner: str) -> None:
        async def work() -> None:
            begun.put_nowait(bucket)
            await let.wait()

        erasing.begin(bucket, owner, work)

    for number in range(5):
        begin(f"hers-{number}", "alice")
    begin("his", "bob")
    assert {await begun.get() for _ in range(2)} == {"hers-0", "his"}
    assert begun.empty()
    let.set()
    await erasing.wait(f"hers-{number}" for number in range(5))
    assert "hers-4" not in erasing


async def test_what_is_being_emptied_ends_with_the_manager() -> None:
    erasing = Erasing(SOON)
    erasing.begin("a", "alice", asyncio.Event().wait)  # type: ignore[arg-type]
    await erasing.wait(["a"])
    assert "a" in erasing
    await erasing.close()
    assert "a" not in erasing
