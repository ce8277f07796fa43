"""Does `S3Store` keep the contract on the embedded store and on MinIO, and its patience where nobody
answers?"""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from contracts.direct_use import as_boto
from contracts.object_store import ObjectStoreContract, bucket, fresh_name, store  # noqa: F401
from drivers.s3.misspelling import Misspelling
from hansa.drivers.s3 import Limits, OpenStore, S3Store, StoreUnreachable
from hansa.kernel.errors import Conflict, Kind
from hansa.storage import BucketBusy, Keys, StoreAddress

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


class Emptying:
    """A store that answers at once, and takes for ever to tell what is in a bucket."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self._talks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for talk in self._talks:
                talk.cancel()
            await asyncio.gather(*self._talks, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                target = head.split()[1].decode()
                if target != "/":
                    self.asked.put_nowait(target)
                    await asyncio.Event().wait()
                body = b"<ListAllMyBucketsResult><Buckets></Buckets></ListAllMyBucketsResult>"
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


async def test_buckets_that_take_long_to_empty_leave_threads_for_everything_else() -> None:
    emptying = Emptying()
    async with emptying.running() as endpoint:
        limits = Limits(attempts=1)
        busy = S3Store(StoreAddress(endpoint, "us-east-1", verify=True), Keys("key", "a-secret-key"), limits=limits)
        deleting = [asyncio.create_task(busy.delete_bucket(f"large-{number}")) for number in range(2 * limits.threads)]
        try:
            async with asyncio.timeout(20):
                for _ in range(limits.deleting_threads):
                    await emptying.asked.get()
                assert await busy.buckets() == []
            assert emptying.asked.empty()
        finally:
            await busy.close()
            for one in deleting:
                one.cancel()
            await asyncio.gather(*deleting, return_exceptions=True)


async def test_buckets_that_take_long_to_list_leave_threads_for_everything_else() -> None:
    emptying = Emptying()
    async with emptying.running() as endpoint:
        limits = Limits(attempts=1)
        busy = S3Store(StoreAddress(endpoint, "us-east-1", verify=True), Keys("key", "a-secret-key"), limits=limits)
        listing = [
            asyncio.create_task(busy.list(f"deep-{number}", brief=number % 2 == 0))
            for number in range(4 * limits.threads)
        ]
        try:
            async with asyncio.timeout(20):
                for _ in range(limits.listing_threads + limits.brief_threads):
                    await emptying.asked.get()
                await busy.check()
                assert await busy.buckets() == []
            assert emptying.asked.empty()
        finally:
            await busy.close()
            for one in listing:
                one.cancel()
            await asyncio.gather(*listing, return_exceptions=True)


async def test_a_bucket_that_is_not_empty_in_time_goes_when_it_is_deleted_again(object_store: OpenStore) -> None:
    real, name = object_store.store, fresh_name()
    await real.create_bucket(name)
    await real.put(name, "k", b"x")
    hasty = S3Store(real.address, object_store.keys, limits=Limits(delete_seconds=0))
    try:
        with pytest.raises(BucketBusy, match="not empty"):
            await hasty.delete_bucket(name)
    finally:
        await hasty.close()
    await real.delete_bucket(name)
    assert name not in await real.buckets()
    await real.delete_bucket(name)


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


ODD_KEYS = ("a\x01b", "a\x1fb", "a\ufffe", "a\uffff", "d\x01/x", "e\x01/", "a\rb", "plain")


@pytest.mark.parametrize("versioned", [False, True])
async def test_a_bucket_goes_whatever_its_objects_are_called(object_store: OpenStore, versioned: bool) -> None:
    """SeaweedFS writes another character for some of these where it lists versions."""
    embedded, name = object_store.store, fresh_name()
    await embedded.create_bucket(name)
    if versioned:
        s3 = as_boto(object_store, object_store.keys)
        on = {"Status": "Enabled"}
        await asyncio.to_thread(lambda: s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=on))
    for key in ODD_KEYS:
        await embedded.put(name, key, b"x")
    async with asyncio.timeout(30):
        await embedded.delete_bucket(name)
    assert name not in await embedded.buckets()
    await embedded.create_bucket(name)
    assert (await embedded.list(name)).objects == ()
    await embedded.delete_bucket(name)


async def test_where_buckets_must_be_empty_names_are_taken_from_the_listing_that_spells_them() -> None:
    odd = Misspelling("a\x01b", "plain", "d/\x01")
    await deleted(odd)
    assert odd.keys == set()


async def test_what_nobody_can_name_is_not_deleted_for_ever() -> None:
    odd = Misspelling("a\x01b", "plain", lists=False)
    with pytest.raises(Conflict):
        await deleted(odd)
    assert odd.keys == {"a\x01b"}
    assert odd.asked < 20


async def deleted(odd: Misspelling) -> None:
    with odd.running() as endpoint:
        limits = Limits(delete_seconds=20)
        opened = S3Store(StoreAddress(endpoint, "us-east-1", True), Keys("key", "a-secret-key"), limits=limits)
        try:
            await opened.delete_bucket("odd-names")
        finally:
            await opened.close()
