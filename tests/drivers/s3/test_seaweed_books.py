"""Does the store tell everything that takes room in a bucket, and as many objects as its listing shows?"""

import secrets
from collections.abc import AsyncIterator
from typing import Any

import boto3
import pytest

from hansa.drivers.s3.seaweed_books import Count, SeaweedBooks
from hansa.drivers.s3.seaweed_rpc import MESSAGES
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


async def test_a_bucket_that_is_not_there(books: SeaweedBooks) -> None:
    with pytest.raises(NotFound):
        await books.contents("nobodys-bucket")


async def test_a_store_that_is_away(object_store_server: RunningStore) -> None:
    nobody = type(object_store_server.filer)("127.0.0.1:1", "key")
    with pytest.raises(Temporary):
        await SeaweedBooks(nobody).contents("any")


def test_counting_ends() -> None:
    """Names without end, or metadata, are not read to the end: such a bucket is closed."""
    names, much = Count("/buckets/b"), Count("/buckets/b")
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
