"""Does the embedded store take nothing while its disk has less room than the reserve, and all as soon as it has?"""

import asyncio
import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from botocore.exceptions import ClientError

from contracts.loans import client, reach
from hansa.drivers.s3 import OpenStore
from hansa.drivers.s3.users import SeaweedUsers
from hansa.identity import Caller
from hansa.storage import Crowding, Keys, LinkRequest, StoreCrowded
from storage.furnished import Room, user

pytest_plugins = ("real.object_store",)

RESERVE = 1000


class Disk:
    def __init__(self) -> None:
        self.free = 5000


@pytest.fixture
async def bucket(object_store: OpenStore) -> Any:
    name = f"test-{secrets.token_hex(8)}"
    await object_store.store.create_bucket(name)
    await object_store.store.put(name, "in/mine.txt", b"x")
    yield name
    await object_store.store.delete_bucket(name)


def allowed(work: Callable[[], object]) -> bool:
    try:
        work()
    except ClientError as error:
        if error.response["Error"]["Code"] != "AccessDenied":
            raise
        return False
    return True


@contextlib.contextmanager
def opened(store: OpenStore, keys: Keys) -> Iterator[Any]:
    with contextlib.closing(client(store, keys)) as made:
        yield made


async def test_people_add_nothing_while_there_is_no_room(object_store: OpenStore, room: Room, bucket: str) -> None:
    users, loans, disk = object_store.users, object_store.loans, Disk()
    assert isinstance(users, SeaweedUsers)
    assert loans is not None
    register = room.register
    crowding = Crowding(register, users, lambda: disk.free, RESERVE)
    keys = Keys.of_user(f"alice-{bucket}", "a-secret-for-tests")
    await users.ensure_user(keys)
    await users.grant(keys.access_key, frozenset({bucket}))
    lent = await loans.lend(bucket, reach(bucket))
    try:
        with opened(object_store, keys) as hers, opened(object_store, lent) as run:

            def put(key: str = "more") -> bool:
                return allowed(lambda: hers.put_object(Bucket=bucket, Key=key, Body=b"x"))

            await crowding.look()
            assert put()
            disk.free = RESERVE - 1
            await crowding.look()
            assert not put()
            assert not put("in/mine.txt")
            assert not allowed(lambda: hers.create_multipart_upload(Bucket=bucket, Key="large"))
            assert "nearly full" in register.crowded
            # what is there can be read and deleted, the administrator works, and runs bring their results
            assert hers.get_object(Bucket=bucket, Key="more")["Body"].read() == b"x"
            assert allowed(lambda: hers.delete_object(Bucket=bucket, Key="more"))
            await object_store.store.put(bucket, "by-the-manager", b"x")
            assert allowed(lambda: run.put_object(Bucket=bucket, Key="out/job/x", Body=b"x"))
            disk.free = RESERVE  # still at its limit
            await crowding.look()
            assert not put()
            disk.free = 2 * RESERVE
            await crowding.look()
            assert put()
            assert register.crowded == ""
    finally:
        await users.close_to_people(False)
        await loans.end(bucket)
        await users.remove_user(keys.access_key)


async def test_a_store_that_was_left_shut_is_opened_by_the_next_life(
    object_store: OpenStore, room: Room, bucket: str
) -> None:
    users = object_store.users
    assert isinstance(users, SeaweedUsers)
    await users.close_to_people(True)
    keys = Keys.of_user(f"bob-{bucket}", "a-secret-for-tests")
    await users.ensure_user(keys)
    await users.grant(keys.access_key, frozenset({bucket}))
    try:
        with opened(object_store, keys) as his:
            assert not allowed(lambda: his.put_object(Bucket=bucket, Key="x", Body=b"x"))
            await Crowding(room.register, users, lambda: 5000, RESERVE).look()
            assert allowed(lambda: his.put_object(Bucket=bucket, Key="x", Body=b"x"))
    finally:
        await users.close_to_people(False)
        await users.remove_user(keys.access_key)


class Shut:
    """A store that knows whether it is."""

    closed = False

    async def close_to_people(self, closed: bool) -> None:
        self.closed = closed


async def test_the_disk_is_looked_at_while_all_threads_are_busy_with_files_of_tenants(room: Room) -> None:
    loop, go_on, store = asyncio.get_running_loop(), threading.Event(), Shut()
    with ThreadPoolExecutor(1) as threads:
        loop.set_default_executor(threads)
        slow = loop.run_in_executor(None, go_on.wait, 20)
        try:
            async with asyncio.timeout(10):
                await Crowding(room.register, store, lambda: RESERVE - 1, RESERVE).look()
            assert store.closed
            assert not slow.done()
        finally:
            go_on.set()
            await slow


async def test_the_manager_signs_no_upload(room: Room) -> None:
    alice: Caller = user("alice")
    name = f"hers-{secrets.token_hex(4)}"
    await room.buckets.create(alice, name)
    room.register.crowded = "the disk of this cluster is nearly full"
    with pytest.raises(StoreCrowded, match="nearly full"):
        await room.buckets.link(alice, name, LinkRequest("k", "upload", 60, "", {}))
    await room.buckets.link(alice, name, LinkRequest("k", "download", 60, "", {}))
    assert "nearly full" in (await room.buckets.get(alice, name)).closed
    await room.buckets.delete(alice, name)
