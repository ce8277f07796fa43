"""What is in a bucket is counted once for many who ask, and again after a while."""

import asyncio

from hansa.drivers.s3 import OpenStore
from hansa.storage import Accounting
from storage.furnished import HandClock

pytest_plugins = ("real.object_store",)


async def test_a_count_stays_for_a_moment(object_store: OpenStore, clock: HandClock, name: str) -> None:
    store = object_store.store
    accounting = Accounting(store, clock)
    assert (await accounting.of(name)).size == 0  # a bucket that is not there
    accounting.forget(name)
    await store.create_bucket(name)
    try:
        await store.put(name, "a", b"123")
        counts = await asyncio.gather(*(accounting.of(name) for _ in range(10)))
        assert {(one.size, one.objects, one.complete) for one in counts} == {(3, 1, True)}
        await store.put(name, "b", b"45")
        assert (await accounting.of(name)).size == 3
        clock.moment += 60
        assert (await accounting.of(name)).size == 5
        assert await accounting.total([name, name]) == 10
    finally:
        await store.delete_bucket(name)
