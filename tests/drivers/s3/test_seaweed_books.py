"""Does the store tell everything that takes room in a bucket, and as many objects as its listing shows?"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any

import boto3
import pytest

from hansa.drivers.s3.seaweed_books import Count, SeaweedBooks
from hansa.drivers.s3.seaweed_rpc import MESSAGES, Filer, unary
from hansa.kernel.errors import NotFound, Temporary
from hansa.storage import MOST_COUNTED
from real.object_store import RunningStore

pytest_plugins = ("real.object_store",)


@pytest.fixture
async def bucket(object_store_server: RunningStore) -> AsyncIterator[str]:
    name = f"books-{secrets.token_hex(4)}"
    await object_store_server.store.create_bucket(name)
    yield name
    await object_store_server.store.delete_bucket(name)


@pytest.fixture
def books(object_store_server: RunningStore) -> SeaweedBooks:
    return SeaweedBooks(object_store_server.filer)


@pytest.fixture
def s3(object_store_server: RunningStore) -> Any:
    keys = object_store_server.keys
    return boto3.client(
        "s3",
        endpoint_url=object_store_server.address.endpoint,
        region_name="us-east-1",
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
    )


async def made(filer: Filer, bucket: str, paths: Iterable[str], metadata: bytes = b"") -> None:
    """Empty objects, quicker than by S3."""
    extended = [{"key": "x-amz-meta-a", "value": metadata}]
    async with filer.channel() as channel:
        make = unary(channel, "/filer_pb.SeaweedFiler/CreateEntry", "Found", "Empty")  # a folder and an entry as well
        places = asyncio.Semaphore(8)

        async def one(path: str) -> None:
            folder, _, name = f"/buckets/{bucket}/{path}".rpartition("/")
            async with places:
                await make(MESSAGES["Found"](directory=folder, entry={"name": name, "extended": extended}), timeout=30)

        await asyncio.gather(*map(one, paths))


async def test_as_many_and_as_large_as_listed(
    books: SeaweedBooks, object_store_server: RunningStore, bucket: str
) -> None:
    for key in ("plain", "in/a/folder", "marker/", "with spaces and ü", "empty"):
        await object_store_server.store.put(bucket, key, b"" if key in ("marker/", "empty") else b"12345")
    listed = (await object_store_server.store.list(bucket)).objects
    told = await books.contents(bucket)
    assert (told.objects, told.size) == (len(listed), sum(one.size for one in listed)) == (5, 15)
    assert told.complete
    assert told.unfinished == 0
    assert 0 < told.beside < 5_000


async def test_metadata_and_uploads_under_way(books: SeaweedBooks, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"", Metadata={"a": "x" * 10_000}, Tagging="t=" + "y" * 10_000)
    begun = s3.create_multipart_upload(Bucket=bucket, Key="large", Metadata={"a": "x" * 10_000})["UploadId"]
    s3.upload_part(Bucket=bucket, Key="large", UploadId=begun, PartNumber=1, Body=b"z" * 500)
    told = await books.contents(bucket)
    assert (told.size, told.objects, told.unfinished) == (0, 1, 500)
    assert 30_000 < told.beside < 35_000
    assert told.held == told.beside + 500


async def test_many_in_one_folder_and_in_folders_of_folders_count_once_each(
    books: SeaweedBooks, object_store_server: RunningStore, bucket: str
) -> None:
    """The store reads 1024 at a time."""
    flat = [f"many/{secrets.token_hex(6)}" for _ in range(1300)]
    nested = [f"{number % 3}/{number % 7}/{number}" for number in range(100)]
    await made(object_store_server.filer, bucket, (*nested, *flat))
    told = await books.contents(bucket)
    assert (told.objects, told.complete) == (1400, True)


async def test_the_store_keeps_nothing_that_it_has_yet_to_tell(
    books: SeaweedBooks, object_store_server: RunningStore, bucket: str, s3: Any
) -> None:
    """Else a folder full of metadata would take the store's memory at each count. What is removed while the store
    waits for us is not told, because it was not read yet."""
    names = [f"{number:04}" for number in range(1200)]
    await made(object_store_server.filer, bucket, names, metadata=b"x" * 2**15)
    async with aclosing(books.told(bucket)) as told:
        assert (await anext(told)).entry.name == bucket
        assert (await anext(told)).entry.name == names[0]
        s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": name} for name in names[1100:]]})
        assert [found.entry.name async for found in told] == names[1:1100]


async def test_others_have_their_turn_while_a_bucket_is_counted(
    books: SeaweedBooks, object_store_server: RunningStore, bucket: str
) -> None:
    await made(object_store_server.filer, bucket, map(str, range(2000)))
    count, turns = asyncio.create_task(books.contents(bucket)), 0
    while not count.done():
        await asyncio.sleep(0)
        turns += 1
    assert (await count).objects == 2000
    assert turns > 200


async def test_a_bucket_that_is_not_there(books: SeaweedBooks) -> None:
    with pytest.raises(NotFound):
        await books.contents("nobodys-bucket")


async def test_a_store_that_is_away(object_store_server: RunningStore) -> None:
    nobody = type(object_store_server.filer)("127.0.0.1:1", "key")
    with pytest.raises(Temporary):
        await SeaweedBooks(nobody).contents("any")


def test_counting_ends() -> None:
    """Names without end, or metadata, are not read to the end: such a bucket is closed."""
    names, much, deep = Count("/buckets/b"), Count("/buckets/b"), Count("/buckets/b")
    for _ in range(MOST_COUNTED):
        names.add("/buckets/b/f", MESSAGES["Entry"](name="k", is_directory=True))
    assert names.contents().complete
    names.add("/buckets/b/f", MESSAGES["Entry"](name="k", is_directory=True))
    assert not names.contents().complete
    heavy = MESSAGES["Entry"](extended=[{"key": "a", "value": b"x" * 2**20}])
    for _ in range(256):
        much.add("/buckets/b", heavy)
    assert not much.contents().complete
    assert much.contents().fills(10**12)
    folder = MESSAGES["Entry"](name="f" * 255, is_directory=True)
    for _ in range(2**16):
        deep.add(f"/buckets/b/{'p' * 500}", folder)
    assert deep.contents().complete
    for _ in range(2**16):
        deep.add(f"/buckets/b/{'p' * 500}", folder)
    assert not deep.contents().complete
