"""Does `S3Store` keep the contract on the embedded store and on MinIO, and its patience where nobody
answers?"""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from contracts.direct_use import as_boto
from contracts.object_store import ObjectStoreContract, bucket, fresh_name, store  # noqa: F401
from hansa.drivers.s3 import Limits, OpenStore, S3Store, StoreUnreachable
from hansa.kernel.errors import Kind
from hansa.storage import Keys, StoreAddress

pytest_plugins = ("real.object_store", "real.minio")

HASTY = Limits(connect_seconds=0.3, read_seconds=0.3, check_seconds=0.5)


class TestEmbedded(ObjectStoreContract):
    @pytest.fixture
    def opened(self, object_store: OpenStore) -> OpenStore:
        return object_store


class TestMinio(ObjectStoreContract):
    @pytest.fixture
    def opened(self, minio_store: OpenStore) -> OpenStore:
        return minio_store


@pytest.fixture
def refusing() -> str:
    """An address where nobody listens."""
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """An address that accepts connections and never says a word."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0), backlog=16)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("how", ["refusing", "silent"])
async def test_a_store_that_does_not_answer_is_temporary_and_bounded(
    how: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address = StoreAddress(request.getfixturevalue(how), "us-east-1", verify=True)
    lonely = S3Store(address, Keys("key", "a-secret-key"), limits=HASTY)
    source = tmp_path / "source"
    source.write_bytes(b"x" * 1000)
    try:
        for call in (
            lonely.check,
            lonely.buckets,
            lambda: lonely.upload("bucket", "key", source),
            lambda: lonely.download("bucket", "key", tmp_path / "target"),
        ):
            began = time.monotonic()
            with pytest.raises(StoreUnreachable) as caught:
                await call()
            assert time.monotonic() - began < 8
            assert caught.value.kind is Kind.UNAVAILABLE
            assert caught.value.hint
        assert not (tmp_path / "target").exists()
    finally:
        await lonely.close()


async def test_a_silent_store_does_not_stop_the_loop(silent: str) -> None:
    lonely = S3Store(StoreAddress(silent, "", verify=True), Keys("key", "a-secret-key"), limits=HASTY)
    try:
        waiting = asyncio.create_task(lonely.buckets())
        ticks = 0
        while not waiting.done():
            await asyncio.sleep(0.01)
            ticks += 1
        assert ticks > 10
        with pytest.raises(StoreUnreachable):
            await waiting
    finally:
        await lonely.close()


async def test_links_are_signed_for_the_public_address(object_store: OpenStore) -> None:
    inner = object_store.store.address
    public = StoreAddress("https://objects.example.org", inner.region, verify=True)
    shown = S3Store(public, object_store.keys, reach_at=inner.endpoint)
    try:
        await shown.check()
        link = await shown.presign("some-bucket", "k", "download", 60)
        assert link.startswith("https://objects.example.org/some-bucket/k?")
    finally:
        await shown.close()


async def test_a_proxy_in_the_environment_is_not_asked_for_loopback(
    object_store: OpenStore, refusing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, refusing)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    direct = S3Store(object_store.store.address, object_store.keys)
    try:
        await direct.check()
    finally:
        await direct.close()


async def test_a_versioned_bucket_with_an_unfinished_upload_can_be_deleted(object_store: OpenStore) -> None:
    address, keys, name = object_store.store.address, object_store.keys, fresh_name()
    await object_store.store.create_bucket(name)

    def fill() -> None:
        s3 = boto3.client(
            "s3",
            endpoint_url=address.endpoint,
            region_name="us-east-1",
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            config=Config(s3={"addressing_style": "path"}, proxies={}),
        )
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        for body in (b"one", b"two"):
            s3.put_object(Bucket=name, Key="k", Body=body)
        s3.delete_object(Bucket=name, Key="k")
        upload = s3.create_multipart_upload(Bucket=name, Key="never")["UploadId"]
        s3.upload_part(Bucket=name, Key="never", UploadId=upload, PartNumber=1, Body=os.urandom(1000))
        s3.close()

    await asyncio.to_thread(fill)
    await object_store.store.delete_bucket(name)
    assert name not in await object_store.store.buckets()


@pytest.mark.parametrize(
    ("method", "key"), [("put_object", ".uploads/object"), ("create_multipart_upload", "not\x01xml")]
)
async def test_uploads_that_a_listing_cannot_spell_count_as_unknown_and_go_with_the_bucket(
    object_store: OpenStore, method: str, key: str
) -> None:
    """SeaweedFS tells no key of the first, and another key of the second."""
    embedded, name = object_store.store, fresh_name()
    await embedded.create_bucket(name)
    begin = getattr(as_boto(object_store, object_store.keys), method)
    await asyncio.to_thread(lambda: begin(Bucket=name, Key=key))
    assert await embedded.unfinished(name, 5) is None
    await embedded.delete_bucket(name)
    assert name not in await embedded.buckets()
    await embedded.create_bucket(name)
    assert await embedded.unfinished(name, 5) == 0
    await embedded.delete_bucket(name)
