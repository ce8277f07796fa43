"""How do we read and write objects? `S3Store` speaks S3 to SeaweedFS, MinIO, AWS or any other store.

boto3 blocks, so every call runs in this store's own few threads. Users' keys and the manager's keys open
separate `S3Store`s on the same address. Errors are translated in `errors.py`."""

import asyncio
import builtins
import contextlib
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import quote, urlsplit

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError, ParamValidationError

from hansa.drivers.s3 import links
from hansa.drivers.s3.errors import FOREIGN, StoreUnreachable, code_of, translated
from hansa.kernel.errors import Forbidden, Invalid
from hansa.storage import Keys, ObjectInfo, ObjectPage, StoreAddress

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

T = TypeVar("T")

_MIB = 2**20
_LONGEST_PRESIGN = 7 * 24 * 3600  # what signature version 4 allows
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_building = threading.Lock()  # boto3 loads its service descriptions into one session, which is not thread-safe


@dataclass(frozen=True, slots=True)
class Limits:
    """How patient and how greedy one `S3Store` is."""

    threads: int = 8
    connect_seconds: float = 3.0
    read_seconds: float = 30.0
    attempts: int = 2
    check_seconds: float = 5.0
    part_bytes: int = 8 * _MIB
    parts_at_once: int = 4


class S3Store:
    """The `ObjectStore` port over S3, with one pair of keys.

    `address` is where clients reach the store, and so what links are signed for; `reach_at` is the endpoint
    this manager uses itself, when that is another one.
    """

    def __init__(self, address: StoreAddress, keys: Keys, *, reach_at: str = "", limits: Limits | None = None) -> None:
        self.address = address
        self.reach_at = reach_at or address.endpoint
        self._keys = keys
        self._limits = limits or Limits()
        self._threads = ThreadPoolExecutor(self._limits.threads, thread_name_prefix="s3")
        self._transfer = TransferConfig(
            multipart_threshold=self._limits.part_bytes,
            multipart_chunksize=self._limits.part_bytes,
            max_concurrency=self._limits.parts_at_once,
            preferred_transfer_client="classic",
        )

    async def close(self) -> None:
        """Lets running calls end by themselves: each is bounded, and nobody waits for them any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if "_s3" in self.__dict__:  # a client that was never used was never made
            self._s3.close()

    async def check(self) -> None:
        try:
            async with asyncio.timeout(self._limits.check_seconds):
                await self._call("reach the store", self._answers)
        except TimeoutError as error:
            raise StoreUnreachable(
                f"the object store did not answer within {self._limits.check_seconds:g} s",
                hint="check that the object store runs and that its endpoint is right",
            ) from error

    async def buckets(self) -> list[str]:
        return await self._call("list the buckets", self._buckets)

    async def create_bucket(self, bucket: str) -> bool:
        return await self._call(f"create bucket {bucket}", lambda: self._create_bucket(bucket))

    async def delete_bucket(self, bucket: str) -> None:
        await self._call(f"delete bucket {bucket}", lambda: self._delete_bucket(bucket))

    async def list(self, bucket: str, prefix: str = "", page: str = "", limit: int = 1000) -> ObjectPage:
        return await self._call(f"list bucket {bucket}", lambda: self._list(bucket, prefix, page, limit))

    async def unfinished(self, bucket: str, most: int) -> int | None:
        return await self._call(f"list uploads of bucket {bucket}", lambda: self._unfinished(bucket, most))

    async def head(self, bucket: str, key: str) -> ObjectInfo:
        answer = await self._call(f"look up {bucket}/{key}", lambda: self._s3.head_object(Bucket=bucket, Key=key))
        modified = float(int(answer["LastModified"].timestamp()))
        return ObjectInfo(key, answer["ContentLength"], answer["ETag"].strip('"'), modified)

    async def put(self, bucket: str, key: str, data: bytes, content_type: str = "") -> None:
        kind = content_type or "application/octet-stream"
        await self._call(
            f"write {bucket}/{key}",
            lambda: self._s3.put_object(Bucket=bucket, Key=key, Body=data, ContentType=kind),
        )

    async def get(self, bucket: str, key: str) -> bytes:
        return await self._call(f"read {bucket}/{key}", lambda: self._get(bucket, key))

    async def upload(self, bucket: str, key: str, source: Path) -> None:
        await self._call(
            f"upload {bucket}/{key}",
            lambda: self._s3.upload_file(str(source), bucket, key, Config=self._transfer),
        )

    async def download(self, bucket: str, key: str, target: Path) -> None:
        await self._call(f"download {bucket}/{key}", lambda: self._download(bucket, key, target))

    async def delete(self, bucket: str, key: str) -> None:
        await self._call(f"delete {bucket}/{key}", lambda: self._s3.delete_object(Bucket=bucket, Key=key))

    async def presign(
        self,
        bucket: str,
        key: str,
        operation: Literal["upload", "download"],
        seconds: int,
        content_type: str = "",
        keys: Keys | None = None,
    ) -> str:
        if not 1 <= seconds <= _LONGEST_PRESIGN:
            raise Invalid(
                f"a link cannot be valid for {seconds} s",
                hint=f"choose between 1 and {_LONGEST_PRESIGN} seconds",
            )
        return links.signed(
            f"{self.address.endpoint.rstrip('/')}/{bucket}/{quote(key, safe='/~')}",
            operation,
            keys or self._keys,
            region=self._region,
            seconds=seconds,
            content_type=content_type,
        )

    # What follows runs in the store's threads.

    async def _call(self, what: str, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, work)
        except FOREIGN as error:
            raise translated(error, what) from error

    @cached_property
    def _s3(self) -> "S3Client":
        # Made on first use, in a thread: boto3 reads large service descriptions, which would stop the loop.
        limits = self._limits
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            connect_timeout=limits.connect_seconds,
            read_timeout=limits.read_seconds,
            retries={"total_max_attempts": limits.attempts, "mode": "standard"},
            max_pool_connections=limits.threads + limits.parts_at_once,
            # Newer checksums travel as trailers that older stores refuse; the signature already covers the
            # body.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            # A proxy from the environment never leads to a store on this machine.
            proxies={} if urlsplit(self.reach_at).hostname in _LOOPBACK else None,
        )
        with _building:
            return boto3.session.Session().client(
                "s3",
                endpoint_url=self.reach_at,
                region_name=self._region,
                verify=self.address.verify,
                aws_access_key_id=self._keys.access_key,
                aws_secret_access_key=self._keys.secret_key,
                config=config,
            )

    @property
    def _region(self) -> str:
        return self.address.region or "us-east-1"

    def _answers(self) -> None:
        try:
            self._s3.list_buckets()
        except ClientError as error:
            # Keys that may not list buckets are still proof of a store that answers.
            if code_of(error) != "AccessDenied":
                raise

    def _buckets(self) -> builtins.list[str]:
        return [bucket["Name"] for bucket in self._s3.list_buckets()["Buckets"]]

    def _get(self, bucket: str, key: str) -> bytes:
        return self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def _create_bucket(self, bucket: str) -> bool:
        try:
            if self._region == "us-east-1":
                self._s3.create_bucket(Bucket=bucket)
            else:
                place = {"LocationConstraint": self._region}
                self._s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=place)  # type: ignore[arg-type]
        except ClientError as error:
            if code_of(error) == "BucketAlreadyOwnedByYou":
                return False
            if code_of(error) != "BucketAlreadyExists":
                raise
            self._s3.head_bucket(Bucket=bucket)  # somebody else's bucket is refused here
            return False
        return True

    def _delete_bucket(self, bucket: str) -> None:
        try:
            self._empty(bucket)
            self._s3.delete_bucket(Bucket=bucket)
        except ClientError as error:
            if code_of(error) != "NoSuchBucket":
                raise

    def _empty(self, bucket: str) -> None:
        """Versions and delete markers too: a versioned bucket is not empty before they are gone."""
        uploads = self._s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
        for upload in uploads:
            with contextlib.suppress(*self._unknown_upload):  # those of SeaweedFS go with the bucket
                self._s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        while True:
            page = self._s3.list_object_versions(Bucket=bucket, MaxKeys=1000)
            doomed: builtins.list[ObjectIdentifierTypeDef] = [
                {"Key": entry["Key"], "VersionId": entry["VersionId"]}
                for entry in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            ]
            if not doomed:
                return
            answer = self._s3.delete_objects(Bucket=bucket, Delete={"Objects": doomed, "Quiet": True})
            for failed in answer.get("Errors", []):  # without progress the loop would never end
                raise Forbidden(
                    f"could not delete {bucket}/{failed.get('Key')}: {failed.get('Code')}",
                    hint="the object may be locked, or belong to someone else",
                )

    def _list(self, bucket: str, prefix: str, page: str, limit: int) -> ObjectPage:
        more = {"ContinuationToken": page} if page else {}
        answer = self._s3.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=limit, **more)  # type: ignore[arg-type]
        objects = tuple(
            ObjectInfo(
                each["Key"],
                each["Size"],
                each["ETag"].strip('"'),
                float(int(each["LastModified"].timestamp())),
            )
            for each in answer.get("Contents", [])
        )
        return ObjectPage(objects, answer.get("NextContinuationToken", "") if answer["IsTruncated"] else "")

    def _unfinished(self, bucket: str, most: int) -> int | None:
        answer = self._s3.list_multipart_uploads(Bucket=bucket, MaxUploads=most + 1 if most < 1000 else 1000)
        uploads = answer.get("Uploads", [])
        if len(uploads) > most or answer.get("IsTruncated"):
            return None
        size, unknown = 0, set()
        for upload in uploads:
            try:
                pages = self._s3.get_paginator("list_parts").paginate(
                    Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                )
                size += sum(part["Size"] for page in pages for part in page.get("Parts", []))
            except self._unknown_upload:
                unknown.add(upload["UploadId"])
        return None if unknown and not unknown.isdisjoint(self._upload_ids(bucket)) else size

    def _upload_ids(self, bucket: str) -> set[str]:
        return {one["UploadId"] for one in self._s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])}

    @property
    def _unknown_upload(self) -> tuple[type[Exception], ...]:
        """A listed upload was completed meanwhile, or has a key that the listing cannot spell: SeaweedFS writes another
        character for those that XML does not have, and none at all for objects that were put among its uploads."""
        return self._s3.exceptions.NoSuchUpload, ParamValidationError

    def _download(self, bucket: str, key: str, target: Path) -> None:
        unfinished = target.with_name(f".hansa-{secrets.token_hex(8)}")
        try:
            self._s3.download_file(bucket, key, str(unfinished), Config=self._transfer)
            os.replace(unfinished, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                unfinished.unlink()
