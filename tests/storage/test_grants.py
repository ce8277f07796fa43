"""A right that ends is taken from everybody whom the store may still let in."""

import pytest

from hansa.drivers.s3 import OpenStore, S3Store
from hansa.identity import Caller
from hansa.kernel.errors import Forbidden, Temporary
from storage.furnished import Away, Room

pytest_plugins = ("real.object_store",)


async def reads(his: S3Store, bucket: str) -> bool:
    try:
        return await his.get(bucket, "x") == b"x"
    except Forbidden:
        return False


@pytest.mark.parametrize("how", ["after a start", "when the store may have forgotten"])
async def test_a_right_ends_for_somebody_who_has_not_come_again(
    room: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str, how: str
) -> None:
    his = object_store.as_user(await room.people.keys(bob))
    try:
        await room.buckets.create(alice, name, "restricted", [bob.uid])
        await object_store.store.put(name, "x", b"x")
        assert await reads(his, name)
        if how == "after a start":
            later = await room.restarted()
        else:
            later = room
            room.grants.forget()
        await later.buckets.update(alice, name, "private")
        assert not await reads(his, name)
        room.register = later.register
    finally:
        await his.close()


async def test_somebody_whom_the_store_does_not_know_any_more_is_in_nobodys_way(
    room: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str
) -> None:
    keys = await room.people.keys(bob)
    await room.buckets.create(alice, name, "restricted", [bob.uid])
    await object_store.store.put(name, "x", b"x")
    await object_store.users.remove_user(keys.access_key)
    room.grants.forget()
    await room.buckets.update(alice, name, "restricted", [bob.uid, "carol"])
    assert not room.grants.settled
    his = object_store.as_user(await room.people.keys(bob))
    try:
        assert await reads(his, name)
    finally:
        await his.close()


async def test_what_the_store_could_not_be_told_is_told_later(
    room: Room, object_store: OpenStore, away: Away, alice: Caller, bob: Caller, name: str
) -> None:
    his = object_store.as_user(await room.people.keys(bob))
    try:
        await room.buckets.create(alice, name, "restricted", [bob.uid])
        await object_store.store.put(name, "x", b"x")
        cut_off = await room.restarted(users=away.users)
        with pytest.raises(Temporary):
            await cut_off.buckets.update(alice, name, "private")
        assert cut_off.buckets.unfinished
        back = await room.restarted()
        await back.buckets.finish()
        assert not await reads(his, name)
        assert not back.buckets.unfinished
    finally:
        await his.close()
