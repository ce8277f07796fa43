"""Whatever a tenant makes the embedded store keep counts against the bucket's quota: metadata, tags, headers, folders
and parts of uploads, not only what is inside of objects."""

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from journeys.conftest import FreshName, Person, signing_in
from journeys.test_full_buckets import LIMIT, MIB, denied, own_client, refused, words
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

PIECE = MIB // 2
ENOUGH = 12 * LIMIT // PIECE  # as fast as one can, one writes some more before it is noticed

Way = Callable[[Any, str, int], object]


@pytest.fixture(scope="module")
def small(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    with running_manager({**trusting(sign_in_provider), "quotas.storage_per_bucket": str(LIMIT)}) as running:
        yield running


@pytest.fixture(scope="module")
def person(small: Manager, sign_in_provider: IdentityProvider) -> Person:
    return signing_in(small, sign_in_provider)


@pytest.fixture
def bucket(person: Person, fresh_name: FreshName) -> Iterator[str]:
    name = fresh_name("free")
    assert person("alice").post("/system/buckets", json={"bucket_name": name}).status_code == 201
    yield name
    assert person("alice").delete(f"/system/buckets/{name}").status_code == 204


def piece() -> str:
    return secrets.token_hex(PIECE // 2)


def metadata(s3: Any, bucket: str, number: int) -> None:
    s3.put_object(Bucket=bucket, Key=f"k{number}", Body=b"", Metadata={"a": piece()})


def tags(s3: Any, bucket: str, number: int) -> None:
    s3.put_object(Bucket=bucket, Key=f"k{number}", Body=b"", Tagging=f"a={piece()}")


def a_header(s3: Any, bucket: str, number: int) -> None:
    s3.put_object(Bucket=bucket, Key=f"k{number}", Body=b"", ContentDisposition=piece())


def a_folder(s3: Any, bucket: str, number: int) -> None:
    s3.put_object(Bucket=bucket, Key=f"k{number}/", Body=piece().encode())


def uploads_begun(s3: Any, bucket: str, number: int) -> None:
    s3.create_multipart_upload(Bucket=bucket, Key=f"k{number}", Metadata={"a": piece()})


@pytest.mark.parametrize("way", [metadata, tags, a_header, a_folder, uploads_begun])
def test_nothing_is_kept_for_free(person: Person, bucket: str, way: Way) -> None:
    s3 = own_client(person("alice"))
    assert any(denied(lambda n=number: way(s3, bucket, n)) for number in range(ENOUGH)), "nobody stops her"  # type: ignore[misc]
    assert "the bucket is full" in eventually(lambda: words(person("alice"), bucket))


def test_nor_a_part_that_is_sent_again_and_again(person: Person, bucket: str) -> None:
    s3 = own_client(person("alice"))
    upload = s3.create_multipart_upload(Bucket=bucket, Key="large")["UploadId"]

    def again() -> None:
        s3.upload_part(Bucket=bucket, Key="large", UploadId=upload, PartNumber=1, Body=piece().encode())

    assert any(denied(again) for _ in range(ENOUGH)), "nobody stops her"
    s3.abort_multipart_upload(Bucket=bucket, Key="large", UploadId=upload)
    eventually(lambda: not refused(s3, bucket), what="room again")


def test_who_takes_the_metadata_away_has_room_again(person: Person, bucket: str) -> None:
    s3 = own_client(person("alice"))
    for number in range(ENOUGH):
        if denied(lambda n=number: metadata(s3, bucket, n)):  # type: ignore[misc]
            break
    assert "in names and metadata" in eventually(lambda: words(person("alice"), bucket))
    for one in s3.list_objects_v2(Bucket=bucket)["Contents"]:
        s3.delete_object(Bucket=bucket, Key=one["Key"])
    eventually(lambda: not refused(s3, bucket), what="room again")
