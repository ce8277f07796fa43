"""Does the embedded store tell of every upload, once, with what a listing shows, and go on after a cut?"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from contracts.object_store import fresh_name
from hansa.drivers.s3 import OpenStore, StoreUnreachable, open_embedded
from hansa.drivers.s3.seaweed_events import SeaweedEvents
from hansa.drivers.s3.seaweed_rpc import Filer
from hansa.storage import ObjectInfo, StoreNews, Upload, UploadSource

pytest_plugins = ("real.object_store",)

PATIENCE = 15.0
LAST = "the-last-one"


@pytest.fixture
async def bucket(object_store: OpenStore) -> AsyncIterator[str]:
    name = fresh_name()
    await object_store.store.create_bucket(name)
    yield name
    await object_store.store.delete_bucket(name)


@pytest.fixture
def uploads(object_store: OpenStore) -> UploadSource:
    assert object_store.uploads is not None
    return object_store.uploads


@pytest.fixture
def boto(object_store: OpenStore) -> Iterator[Any]:
    """For what the port does not offer: copies, tags, versions."""
    client = boto3.client(
        "s3",
        endpoint_url=object_store.store.address.endpoint,
        region_name="us-east-1",
        aws_access_key_id=object_store.keys.access_key,
        aws_secret_access_key=object_store.keys.secret_key,
        config=Config(s3={"addressing_style": "path"}, proxies={}),
    )
    yield client
    client.close()


async def until_last(news: AsyncIterator[StoreNews], bucket: str) -> list[Upload]:
    """The uploads to this bucket, up to the one named LAST."""
    seen: list[Upload] = []
    async with asyncio.timeout(PATIENCE):
        async for each in news:
            if each.upload is not None and each.upload.bucket == bucket:
                if each.upload.object.key == LAST:
                    return seen
                seen.append(each.upload)
    raise AssertionError("the stream ended")


async def test_an_upload_is_told_at_once_as_a_listing_shows_it(
    object_store: OpenStore, uploads: UploadSource, bucket: str
) -> None:
    store, lags = object_store.store, []
    await store.put(bucket, "warm", b"x")  # the first write to a bucket also makes its volumes
    async with uploads.follow(None) as news:
        for key in ("in/a b+ñ.txt", "in/plain", "日本"):
            await store.put(bucket, key, key.encode(), "text/plain")
            put = time.perf_counter()
            async with asyncio.timeout(PATIENCE):
                async for each in news:
                    if each.upload is not None and each.upload.bucket == bucket:
                        break
            lags.append(time.perf_counter() - put)
            assert each.upload == Upload(bucket, await store.head(bucket, key), "text/plain")
    assert min(lags) < 0.5


async def test_every_kind_of_write_is_one_upload(
    object_store: OpenStore, uploads: UploadSource, bucket: str, boto: Any, tmp_path: Path
) -> None:
    store = object_store.store
    (tmp_path / "big").write_bytes(os.urandom(9 * 2**20))
    listed: list[ObjectInfo] = []
    async with uploads.follow(None) as news:
        await store.put(bucket, "k", b"one")
        listed.append(await store.head(bucket, "k"))
        await store.put(bucket, "k", b"two")  # overwrite
        listed.append(await store.head(bucket, "k"))
        await store.put(bucket, "k", b"two")  # the same content again
        listed.append(await store.head(bucket, "k"))
        await store.put(bucket, "empty", b"")
        listed.append(await store.head(bucket, "empty"))
        await store.upload(bucket, "big", tmp_path / "big")  # in parts
        listed.append(await store.head(bucket, "big"))
        source = {"Bucket": bucket, "Key": "k"}
        await asyncio.to_thread(boto.copy_object, Bucket=bucket, Key="copy", CopySource=source)
        listed.append(await store.head(bucket, "copy"))
        await store.put(bucket, LAST, b"")
        told = await until_last(news, bucket)
    assert [upload.object for upload in told] == listed


async def test_other_changes_are_no_uploads(
    object_store: OpenStore, uploads: UploadSource, bucket: str, boto: Any
) -> None:
    store = object_store.store
    await store.put(bucket, "k", b"one")
    async with uploads.follow(None) as news:
        tags = {"TagSet": [{"Key": "a", "Value": "b"}]}
        await asyncio.to_thread(boto.put_object_tagging, Bucket=bucket, Key="k", Tagging=tags)
        await store.put(bucket, "folder/", b"")  # a folder marker
        await store.delete(bucket, "k")
        unfinished = await asyncio.to_thread(boto.create_multipart_upload, Bucket=bucket, Key="never")
        part = {"Bucket": bucket, "Key": "never", "UploadId": unfinished["UploadId"], "PartNumber": 1}
        await asyncio.to_thread(boto.upload_part, **part, Body=b"part")
        await store.put(bucket, LAST, b"")
        assert await until_last(news, bucket) == []


async def test_versions_are_told_under_their_key(
    object_store: OpenStore, uploads: UploadSource, bucket: str, boto: Any
) -> None:
    store = object_store.store
    versioning = {"Status": "Enabled"}
    await asyncio.to_thread(boto.put_bucket_versioning, Bucket=bucket, VersioningConfiguration=versioning)
    listed = []
    async with uploads.follow(None) as news:
        for body in (b"one", b"two"):
            await store.put(bucket, "in/k", body)
            listed.append(await store.head(bucket, "in/k"))
        await store.delete(bucket, "in/k")  # only a delete marker
        await store.put(bucket, LAST, b"")
        told = await until_last(news, bucket)
    assert [upload.object for upload in told] == listed


async def test_goes_on_from_a_cursor(object_store: OpenStore, uploads: UploadSource, bucket: str) -> None:
    store = object_store.store
    async with uploads.follow(None) as news:
        await store.put(bucket, "before", b"x")
        async with asyncio.timeout(PATIENCE):
            async for each in news:
                if each.upload is not None and each.upload.bucket == bucket:
                    break
    missed = [f"missed-{number}" for number in range(10)]
    for key in missed:
        await store.put(bucket, key, b"x")
    await store.put(bucket, LAST, b"")
    async with uploads.follow(each.cursor) as news:
        told = await until_last(news, bucket)
    assert [upload.object.key for upload in told] == missed


async def test_two_followers_hear_the_same(object_store: OpenStore, uploads: UploadSource, bucket: str) -> None:
    async with uploads.follow(None) as one, uploads.follow(None) as other:
        await object_store.store.put(bucket, "k", b"x")
        await object_store.store.put(bucket, LAST, b"")
        assert len(await until_last(one, bucket)) == len(await until_last(other, bucket)) == 1


async def test_a_burst_is_told_completely(object_store: OpenStore, uploads: UploadSource, bucket: str) -> None:
    keys = {f"burst/{number}" for number in range(100)}
    async with uploads.follow(None) as news:
        async with asyncio.TaskGroup() as tasks:
            for key in keys:
                tasks.create_task(object_store.store.put(bucket, key, b"x"))
        await object_store.store.put(bucket, LAST, b"")
        told = await until_last(news, bucket)
    assert sorted(upload.object.key for upload in told) == sorted(keys)


async def test_an_absent_store_is_temporary() -> None:
    with pytest.raises(StoreUnreachable):
        async with SeaweedEvents(Filer("127.0.0.1:1", "key"), connect_seconds=0.5).follow(None):
            pass


async def test_a_killed_store_cuts_the_stream_and_is_followed_again(tmp_path: Path) -> None:
    opened = await open_embedded(tmp_path / "store")
    embedded, uploads = opened.embedded, opened.uploads
    assert embedded is not None
    assert uploads is not None
    try:
        await opened.store.create_bucket("harbour")
        seen, cursor = embedded.starts, None
        async with uploads.follow(None) as news:
            await opened.store.put("harbour", "before", b"x")
            async with asyncio.timeout(PATIENCE):
                async for each in news:
                    cursor = each.cursor
                    if each.upload is not None:
                        break
            os.kill(embedded.weed_pid, signal.SIGKILL)
            with pytest.raises(StoreUnreachable):
                await until_last(news, "harbour")
        async with asyncio.timeout(30):
            assert await embedded.restarted(seen) == seen + 1
        async with uploads.follow(cursor) as news:
            with contextlib.suppress(StoreUnreachable):
                await opened.store.check()
            await opened.store.put("harbour", LAST, b"")
            # What weed had not yet written to its log is lost with it, so "before" may or may not come again.
            told = await until_last(news, "harbour")
        assert {upload.object.key for upload in told} <= {"before"}
        assert await opened.store.get("harbour", "before") == b"x"
    finally:
        await opened.close()
