"""What every store that lends keys must do: the suite for `Loans`.

One borrower tries everything an S3 client can ask for: a handful of requests must work, all others must not. A driver's
test module subclasses it and offers the fixture `opened`.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from hansa.drivers.s3 import OpenStore
from hansa.storage import Keys, Loans, Reach

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

REFUSED = {
    "AccessDenied",
    "InvalidAccessKeyId",
    "403",
    "SignatureDoesNotMatch",
    "NoSuchKey",
    "NoSuchBucket",
    "404",
    "InvalidRequest",
    "XMinioInvalidResourceName",
}


@pytest.fixture
async def bucket(opened: OpenStore) -> AsyncIterator[str]:
    """With an input, somebody else's things beside it, and a second bucket that is none of the run's business."""
    name = f"test-{secrets.token_hex(8)}"
    for each in (name, f"{name}-other"):
        await opened.store.create_bucket(each)
        for key in ("in/mine.txt", "in/other.txt", "in/mine.txt2", "out/job/old", "out/job10/x", "data/a", "dataset/b"):
            await opened.store.put(each, key, b"secret")
    yield name
    for each in (name, f"{name}-other"):
        await opened.store.delete_bucket(each)


@pytest.fixture
def loans(opened: OpenStore) -> Loans:
    assert opened.loans is not None
    return opened.loans


@pytest.fixture
async def name(loans: Loans) -> AsyncIterator[str]:
    chosen = f"job-{secrets.token_hex(8)}"
    yield chosen
    await loans.end(chosen)


def reach(bucket: str) -> Reach:
    return Reach(
        read=frozenset({(bucket, "in/mine.txt")}),
        write=frozenset({(bucket, "out/job/")}),
        share=frozenset({(bucket, "data/")}),
    )


def client(opened: OpenStore, keys: Keys) -> "S3Client":
    return boto3.session.Session().client(
        "s3",
        endpoint_url=opened.store.reach_at,
        region_name="us-east-1",
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        aws_session_token=keys.session_token or None,
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": 1},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            proxies={},
        ),
    )


def allowed(s3: "S3Client", bucket: str) -> dict[str, Callable[[], object]]:
    def in_parts() -> object:
        begun = s3.create_multipart_upload(Bucket=bucket, Key="out/job/large")["UploadId"]
        part = s3.upload_part(Bucket=bucket, Key="out/job/large", PartNumber=1, UploadId=begun, Body=b"x" * 10)
        whole = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        return s3.complete_multipart_upload(
            Bucket=bucket,
            Key="out/job/large",
            UploadId=begun,
            MultipartUpload=whole,  # type: ignore[arg-type]
        )

    return {
        "read the input": lambda: _read(s3, bucket, "in/mine.txt"),
        "write an output": lambda: s3.put_object(Bucket=bucket, Key="out/job/new", Body=b"x"),
        "write a nested one": lambda: s3.put_object(Bucket=bucket, Key="out/job/a/b c/ü", Body=b"x"),
        "write in parts": in_parts,
        "list the shared folder": lambda: s3.list_objects_v2(Bucket=bucket, Prefix="data/"),
        "read from it": lambda: _read(s3, bucket, "data/a"),
        "write to it": lambda: s3.put_object(Bucket=bucket, Key="data/new", Body=b"x"),
    }


def forbidden(s3: "S3Client", bucket: str) -> dict[str, Callable[[], object]]:
    other = f"{bucket}-other"
    copy = f"{bucket}/in/other.txt"
    return {
        "read another input": lambda: s3.get_object(Bucket=bucket, Key="in/other.txt"),
        "read one that begins alike": lambda: s3.get_object(Bucket=bucket, Key="in/mine.txt2"),
        "read by another way": lambda: s3.get_object(Bucket=bucket, Key="in/../in/other.txt"),
        "read its own output": lambda: s3.get_object(Bucket=bucket, Key="out/job/old"),
        "read another job's": lambda: s3.get_object(Bucket=bucket, Key="out/job10/x"),
        "read a folder that begins alike": lambda: s3.get_object(Bucket=bucket, Key="dataset/b"),
        "read another bucket": lambda: s3.get_object(Bucket=other, Key="in/mine.txt"),
        "look at another object": lambda: s3.head_object(Bucket=bucket, Key="in/other.txt"),
        "look at another bucket": lambda: s3.head_bucket(Bucket=other),
        "overwrite the input": lambda: s3.put_object(Bucket=bucket, Key="in/mine.txt", Body=b"x"),
        "write beside the output": lambda: s3.put_object(Bucket=bucket, Key="out/x", Body=b"x"),
        "write to another job's": lambda: s3.put_object(Bucket=bucket, Key="out/job10/x", Body=b"x"),
        "write out of the output": lambda: s3.put_object(Bucket=bucket, Key="out/job/../../in/mine.txt", Body=b"x"),
        "write to another bucket": lambda: s3.put_object(Bucket=other, Key="out/job/x", Body=b"x"),
        "begin an upload elsewhere": lambda: s3.create_multipart_upload(Bucket=bucket, Key="in/large"),
        "delete the input": lambda: s3.delete_object(Bucket=bucket, Key="in/mine.txt"),
        "delete an output": lambda: s3.delete_object(Bucket=bucket, Key="out/job/old"),
        "delete another's": lambda: s3.delete_object(Bucket=other, Key="in/mine.txt"),
        "delete several": lambda: _deleted(s3, bucket, "in/mine.txt"),
        "list the bucket": lambda: s3.list_objects_v2(Bucket=bucket),
        "list inputs": lambda: s3.list_objects_v2(Bucket=bucket, Prefix="in/"),
        "list what begins alike": lambda: s3.list_objects_v2(Bucket=bucket, Prefix="data"),
        "list the old way": lambda: s3.list_objects(Bucket=bucket),
        "list versions": lambda: s3.list_object_versions(Bucket=bucket),
        "list uploads": lambda: s3.list_multipart_uploads(Bucket=bucket),
        "list another bucket": lambda: s3.list_objects_v2(Bucket=other),
        "copy from outside": lambda: s3.copy_object(Bucket=bucket, Key="out/job/stolen", CopySource=copy),
        "copy from another bucket": lambda: s3.copy_object(
            Bucket=bucket, Key="out/job/stolen", CopySource=f"{other}/in/mine.txt"
        ),
        "copy a part from outside": lambda: _part_copied(s3, bucket, copy),
        "tag the input": lambda: s3.put_object_tagging(
            Bucket=bucket, Key="in/mine.txt", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]}
        ),
        "open an object": lambda: s3.put_object_acl(Bucket=bucket, Key="out/job/old", ACL="public-read"),
        "open the bucket": lambda: s3.put_bucket_acl(Bucket=bucket, ACL="public-read"),
        "write a policy": lambda: s3.put_bucket_policy(Bucket=bucket, Policy="{}"),
        "read the policy": lambda: s3.get_bucket_policy(Bucket=bucket),
        "make a bucket": lambda: s3.create_bucket(Bucket=f"{bucket}-new"),
        "delete the bucket": lambda: s3.delete_bucket(Bucket=other),
    }


def _read(s3: "S3Client", bucket: str, key: str) -> bytes:
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()


def _deleted(s3: "S3Client", bucket: str, key: str) -> object:
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key}]})
    if answer.get("Errors"):
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "DeleteObjects")
    return answer


def _part_copied(s3: "S3Client", bucket: str, copy: str) -> object:
    begun = s3.create_multipart_upload(Bucket=bucket, Key="out/job/stolen")["UploadId"]
    return s3.upload_part_copy(Bucket=bucket, Key="out/job/stolen", PartNumber=1, UploadId=begun, CopySource=copy)


def tried(requests: dict[str, Callable[[], object]]) -> list[str]:
    """Which of them were granted."""
    granted = []
    for what, ask in requests.items():
        try:
            ask()
            granted.append(what)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            assert code in REFUSED or "Denied" in code, (what, code)
    return granted


class LoansContract:
    async def test_a_loan_opens_what_it_names(self, opened: OpenStore, loans: Loans, bucket: str, name: str) -> None:
        s3 = client(opened, await loans.lend(name, reach(bucket)))
        with contextlib.closing(s3):
            granted = await asyncio.to_thread(lambda: tried(allowed(s3, bucket)))
            assert granted == list(allowed(s3, bucket))

    async def test_and_nothing_else(self, opened: OpenStore, loans: Loans, bucket: str, name: str) -> None:
        s3 = client(opened, await loans.lend(name, reach(bucket)))
        with contextlib.closing(s3):
            assert await asyncio.to_thread(lambda: tried(forbidden(s3, bucket))) == []
        for key in ("in/mine.txt", "in/other.txt", "out/job/old", "out/job10/x"):
            assert await opened.store.get(bucket, key) == b"secret"

    async def test_its_buckets_are_not_listed(self, opened: OpenStore, loans: Loans, bucket: str, name: str) -> None:
        """A store may answer, but with none that the loan does not open."""
        s3 = client(opened, await loans.lend(name, reach(bucket)))
        with contextlib.closing(s3), contextlib.suppress(ClientError):
            listed = await asyncio.to_thread(s3.list_buckets)
            assert {one["Name"] for one in listed["Buckets"]} <= {bucket}

    async def test_a_name_of_the_stores_own_opens_and_ends_like_any_other(
        self, opened: OpenStore, loans: Loans, bucket: str, name: str
    ) -> None:
        """Whatever the store made ahead for it. Before it is lent its keys open nothing, and no two loans share one."""
        await loans.end(name)  # from now on there may be something made ahead
        names = set()
        for _ in range(12):
            names.add(own := loans.new_name())
            s3 = client(opened, await loans.lend(own, reach(bucket)))
            with contextlib.closing(s3):
                assert await asyncio.to_thread(_read, s3, bucket, "in/mine.txt") == b"secret"
                assert await asyncio.to_thread(lambda s3=s3: tried(forbidden(s3, bucket))) == []  # type: ignore[misc]
                await loans.end(own)
                assert await asyncio.to_thread(lambda s3=s3: tried(allowed(s3, bucket))) == []  # type: ignore[misc]
        assert len(names) == 12

    async def test_it_ends_at_once_with_all_that_was_signed(
        self, opened: OpenStore, loans: Loans, bucket: str, name: str
    ) -> None:
        s3 = client(opened, await loans.lend(name, reach(bucket)))
        with contextlib.closing(s3):
            await asyncio.to_thread(_read, s3, bucket, "in/mine.txt")
            await loans.end(name)
            assert await asyncio.to_thread(lambda: tried(allowed(s3, bucket))) == []
        await loans.end(name)

    async def test_another_loan_lives_on(self, opened: OpenStore, loans: Loans, bucket: str, name: str) -> None:
        await loans.lend(name, reach(bucket))
        second = f"{name}-second"
        s3 = client(opened, await loans.lend(second, reach(bucket)))
        with contextlib.closing(s3):
            await loans.end(name)
            assert await asyncio.to_thread(lambda: tried(allowed(s3, bucket))) == list(allowed(s3, bucket))
        await loans.end(second)

    async def test_lent_again_it_opens_what_it_names_now(
        self, opened: OpenStore, loans: Loans, bucket: str, name: str
    ) -> None:
        await loans.lend(name, reach(bucket))
        narrow = Reach(read=frozenset({(bucket, "in/other.txt")}))
        s3 = client(opened, await loans.lend(name, narrow))
        with contextlib.closing(s3):
            found = await asyncio.to_thread(_read, s3, bucket, "in/other.txt")
            assert found == b"secret"

    async def test_names_with_wildcards_open_no_more_than_they_must(
        self, opened: OpenStore, loans: Loans, bucket: str, name: str
    ) -> None:
        await opened.store.put(bucket, "in/*", b"star")
        wild = Reach(read=frozenset({(bucket, "in/*"), (bucket, "*"), (bucket, "in/${x}")}))
        s3 = client(opened, await loans.lend(name, wild))
        with contextlib.closing(s3):
            found = await asyncio.to_thread(_read, s3, bucket, "in/*")
            assert found == b"star"
            assert await asyncio.to_thread(lambda: tried(forbidden(s3, bucket))) == []

    async def test_what_a_dead_manager_lent_ends(self, opened: OpenStore, loans: Loans, bucket: str, name: str) -> None:
        kept = f"{name}-kept"
        lost, alive = await loans.lend(name, reach(bucket)), await loans.lend(kept, reach(bucket))
        await loans.end_others(frozenset({kept}))
        for keys, wanted in ((lost, False), (alive, True)):
            s3 = client(opened, keys)
            with contextlib.closing(s3):
                granted = await asyncio.to_thread(lambda s3=s3: tried(allowed(s3, bucket)))  # type: ignore[misc]
                assert bool(granted) is wanted
        await loans.end(kept)
