"""Buckets come back as they were written; several are added together or not at all."""

from dataclasses import replace

import pytest

from hansa.storage import Bucket, BucketExists
from hansa.store import Database
from hansa.store.buckets import BucketStore

BUCKET = Bucket("photos", "alice@example.org", "Älice", "restricted", ("bob", "ü"), "gray", "creating", 1.5)


async def test_buckets_are_kept(database: Database) -> None:
    store = BucketStore(database)
    await store.add([BUCKET, replace(BUCKET, name="music", allowed_users=())])
    changed = replace(BUCKET, phase="ready", visibility="", allowed_users=())
    await store.replace(changed)
    assert await store.all() == [replace(BUCKET, name="music", allowed_users=()), changed]
    await store.remove("music")
    await store.remove("music")
    assert await store.all() == [changed]


async def test_a_taken_name_spoils_the_whole_addition(database: Database) -> None:
    store = BucketStore(database)
    await store.add([BUCKET])
    with pytest.raises(BucketExists):
        await store.add([replace(BUCKET, name="new"), BUCKET])
    assert await store.all() == [BUCKET]
