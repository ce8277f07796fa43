"""A bucket's quota holds against people who write to the store with their own keys, past the manager."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from journeys.conftest import FreshName, Person, signing_in
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

MIB = 2**20
LIMIT = 8 * MIB


@pytest.fixture(scope="module")
def small(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    limits = {"quotas.storage_per_bucket": str(LIMIT), "storage.quota_every": 2}
    with running_manager({**trusting(sign_in_provider), **limits}) as running:
        yield running


@pytest.fixture(scope="module")
def person(small: Manager, sign_in_provider: IdentityProvider) -> Person:
    return signing_in(small, sign_in_provider)


@pytest.fixture
def bucket(person: Person, fresh_name: FreshName) -> Iterator[str]:
    name = fresh_name("full")
    body = {"bucket_name": name, "visibility": "restricted", "allowed_users": ["bob@test"]}
    assert person("alice").post("/system/buckets", json=body).status_code == 201
    yield name
    assert person("alice").delete(f"/system/buckets/{name}").status_code == 204


def own_client(person: httpx.Client) -> Any:
    """What anybody can do with the keys they are given."""
    provider = person.get("/system/config").json()["minio_provider"]
    return boto3.client(
        "s3",
        endpoint_url=provider["endpoint"],
        region_name=provider["region"],
        aws_access_key_id=provider["access_key"],
        aws_secret_access_key=provider["secret_key"],
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )


def refused(s3: Any, bucket: str, key: str = "more", size: int = 1) -> bool:
    return denied(lambda: s3.put_object(Bucket=bucket, Key=key, Body=os.urandom(size)))


def denied(work: Callable[[], object]) -> bool:
    try:
        work()
    except ClientError as error:
        if error.response["Error"]["Code"] != "AccessDenied":
            raise
        return True
    return False


def words(person: httpx.Client, bucket: str) -> str:
    return str(person.get(f"/system/buckets/{bucket}").json().get("closed_for_writing", ""))


def test_a_full_bucket_is_closed_for_all_until_there_is_room(person: Person, bucket: str) -> None:
    alice, bob = person("alice"), person("bob")
    hers, his = own_client(alice), own_client(bob)
    written = 0
    while not refused(his, bucket, f"part-{written}", MIB):  # as fast as one can
        written += 1
        assert written < 200, "nobody stops him"
    eventually(lambda: refused(hers, bucket))  # the owner too
    assert "the bucket is full" in words(alice, bucket)
    assert "of 8Mi" in words(alice, bucket)
    link = alice.post(f"/system/buckets/{bucket}/presign", json={"object_key": "k", "operation": "upload"})
    assert link.status_code == 403

    listed = hers.list_objects_v2(Bucket=bucket)["Contents"]
    assert len(hers.get_object(Bucket=bucket, Key=listed[0]["Key"])["Body"].read()) == MIB
    for one in listed:
        hers.delete_object(Bucket=bucket, Key=one["Key"])
    eventually(lambda: not refused(his, bucket), what="room again")
    eventually(lambda: words(alice, bucket) == "")


def test_parts_that_are_never_completed_count(person: Person, bucket: str) -> None:
    s3 = own_client(person("alice"))
    upload = s3.create_multipart_upload(Bucket=bucket, Key="large")["UploadId"]
    part = {"Bucket": bucket, "Key": "large", "UploadId": upload, "Body": os.urandom(5 * MIB)}
    stopped = (denied(partial(s3.upload_part, **part, PartNumber=number)) for number in range(1, 200))
    assert any(stopped), "nobody stops her"
    eventually(lambda: "in unfinished uploads" in words(person("alice"), bucket))
    s3.abort_multipart_upload(Bucket=bucket, Key="large", UploadId=upload)
    eventually(lambda: not refused(s3, bucket), what="room again")


@pytest.mark.parametrize("key", [".uploads/k", "a/.uploads/k", "k.versions/v_1"])
def test_nothing_is_added_that_the_store_does_not_list(person: Person, bucket: str, key: str) -> None:
    """Nor counts: such objects held what they liked, and kept their bucket and its service from being removed."""
    s3 = own_client(person("alice"))
    assert refused(s3, bucket, key)
    assert denied(lambda: s3.create_multipart_upload(Bucket=bucket, Key=key))
    assert not refused(s3, bucket, "k")
    assert person("alice").get(f"/system/buckets/{bucket}").status_code == 200


def test_an_upload_whose_name_no_listing_can_spell_counts_too(person: Person, bucket: str) -> None:
    """The bucket goes with it at the end."""
    s3 = own_client(person("alice"))
    upload = s3.create_multipart_upload(Bucket=bucket, Key="not\x01xml")["UploadId"]
    part = {"Bucket": bucket, "Key": "not\x01xml", "UploadId": upload, "Body": os.urandom(MIB)}
    stopped = (denied(partial(s3.upload_part, **part, PartNumber=number)) for number in range(1, 1000))
    assert any(stopped), "nobody stops her"
    eventually(lambda: "in unfinished uploads" in words(person("alice"), bucket))


def test_it_stays_closed_over_a_restart_and_opens_with_a_larger_quota(
    small: Manager, person: Person, bucket: str
) -> None:
    s3 = own_client(person("alice"))
    assert not refused(s3, bucket, "large", LIMIT)
    eventually(lambda: refused(s3, bucket))
    small.restart()
    s3 = own_client(person("alice"))
    for number in range(20):  # at no moment while the store is made sure of
        assert refused(s3, bucket, f"after-{number}")
    assert not refused(own_client(person("bob")), make_other(person))
    give(small, "1Gi")
    eventually(lambda: not refused(s3, bucket), what="room by a larger quota")
    give(small, str(LIMIT))
    eventually(lambda: refused(s3, bucket), what="a smaller quota")


def give(small: Manager, size: str) -> None:
    answer = small.admin.put("/system/quotas/user/alice@test", json={"minio": {"storage_per_bucket": size}})
    assert answer.status_code == 200, answer.text


def make_other(person: Person) -> str:
    """A bucket of somebody else's."""
    assert person("bob").post("/system/buckets", json={"bucket_name": "other-of-bob"}).status_code == 201
    return "other-of-bob"
