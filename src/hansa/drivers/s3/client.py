"""How do we read and write objects? `S3Store` speaks S3 to SeaweedFS, MinIO, AWS or any other store.

boto3 blocks, so every call runs in this store's own few threads. What may take long has others, so that it keeps
nothing else waiting: listings, those that somebody waits for, and the removal of buckets. Users' keys and the manager's
keys open separate `S3Store`s on the same address. Errors are translated in `errors.py`."""

import asyncio
import builtins
import contextlib
import os
import re
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import quote, urlsplit

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError, ParamValidationError

from hansa.drivers.s3 import links
from hansa.drivers.s3.errors import FOREIGN, StoreUnreachable, code_of, translated
from hansa.kernel.errors import Forbidden, Invalid, NotFound
from hansa.storage import BucketBusy, Keys, ObjectInfo, ObjectPage, StoreAddress

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import MultipartUploadTypeDef, ObjectIdentifierTypeDef

T = TypeVar("T")

_MIB = 2**20
_LONGEST_PRESIGN = 7 * 24 * 3600  # what signature version 4 allows
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_DELETED_AT_ONCE = 100  # objects: few enough that a page of them is told in time, however deep their folders are
_UNSPELT = re.compile(r"[^ -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML does not carry, or changes
_building = threading.Lock()  # boto3 loads its service descriptions into one session, which is not thread-safe


@dataclass(frozen=True, slots=True)
class Limits:
    """How patient and how greedy one `S3Store` is."""

    threads: int = 8
    listing_threads: int = 8
    brief_threads: int = 4
    deleting_threads: int = 2
    connect_seconds: float = 3.0
    read_seconds: float = 30.0
    attempts: int = 2
    brief_seconds: float = 10.0  # for a listing that somebody waits for, and one attempt
    check_seconds: float = 5.0
    delete_seconds: float = 60.0  # for a bucket with all that is in it
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
        self._listing = ThreadPoolExecutor(self._limits.listing_threads, thread_name_prefix="s3 listing")
        self._brief = ThreadPoolExecutor(self._limits.brief_threads, thread_name_prefix="s3 brief")
        self._deleting = ThreadPoolExecutor(self._limits.deleting_threads, thread_name_prefix="s3 deleting")
        self._checking = ThreadPoolExecutor(1, thread_name_prefix="s3 checking")
        self._transfer = TransferConfig(
            multipart_threshold=self._limits.part_bytes,
            multipart_chunksize=self._limits.part_bytes,
            max_concurrency=self._limits.parts_at_once,
            preferred_transfer_client="classic",
        )

    async def close(self) -> None:
        """Lets running calls end by themselves: each is bounded, and nobody waits for them any more."""
        for threads in (self._threads, self._listing, self._brief, self._deleting, self._checking):
            threads.shutdown(wait=False, cancel_futures=True)
        for client in {"_s3", "_brief_s3"} & self.__dict__.keys():  # one that was never used was never made
            self.__dict__[client].close()

    async def check(self) -> None:
        try:
            async with asyncio.timeout(self._limits.check_seconds):
                await self._call("reach the store", self._answers, self._checking)
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
        try:
            async with asyncio.timeout(self._limits.delete_seconds):
                if not await self._delete_step(bucket, lambda: self._delete_whole(bucket)):
                    await self._empty(bucket)
                    await self._delete_step(bucket, lambda: self._s3.delete_bucket(Bucket=bucket))
        except NotFound as error:
            if not isinstance(error.__cause__, ClientError) or code_of(error.__cause__) != "NoSuchBucket":
                raise
        except TimeoutError as error:
            raise BucketBusy(
                f"bucket {bucket} is not empty after {self._limits.delete_seconds:g} s",
                hint="delete it again, until nothing is left; what has gone does not come back",
                retry_after=10,
            ) from error

    async def list(
        self, bucket: str, prefix: str = "", page: str = "", limit: int = 1000, *, brief: bool = False
    ) -> ObjectPage:
        def work() -> ObjectPage:
            return self._list(self._brief_s3 if brief else self._s3, bucket, prefix, page, limit)

        return await self._call(f"list bucket {bucket}", work, self._brief if brief else self._listing)

    async def unfinished(self, bucket: str, most: int) -> int | None:
        what = f"list uploads of bucket {bucket}"
        return await self._call(what, lambda: self._unfinished(bucket, most), self._listing)

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

    async def _empty(self, bucket: str) -> None:
        """As far as the store lets us: an object that it tells by another name stays. So a page that comes again as it
        was is the last one; whether anything is left, the store says when the bucket goes."""
        for upload in await self._delete_step(bucket, lambda: self._uploads(bucket)):
            await self._delete_step(bucket, partial(self._abort, bucket, upload))
        # Versions and delete markers too: a versioned bucket is not empty before they are gone. The listing of objects
        # spells names that the one of versions does not.
        for listed in (self._versions, self._objects):
            last: builtins.list[ObjectIdentifierTypeDef] = []
            while (page := await self._delete_step(bucket, partial(listed, bucket))) and page != last:
                await self._delete_step(bucket, partial(self._delete_all, bucket, page))
                last = page

    # What follows runs in the store's threads.

    async def _call(self, what: str, work: Callable[[], T], threads: ThreadPoolExecutor | None = None) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(threads or self._threads, work)
        except FOREIGN as error:
            raise translated(error, what) from error

    async def _delete_step(self, bucket: str, work: Callable[[], T]) -> T:
        """Short, so that all who delete have their turn."""
        return await self._call(f"delete bucket {bucket}", work, self._deleting)

    # Made on first use, in a thread: boto3 reads large service descriptions, which would stop the loop.

    @cached_property
    def _s3(self) -> "S3Client":
        limits = self._limits
        threads = limits.threads + limits.listing_threads + limits.deleting_threads + 1
        return self._client(limits.read_seconds, limits.attempts, threads + limits.parts_at_once)

    @cached_property
    def _brief_s3(self) -> "S3Client":
        return self._client(self._limits.brief_seconds, 1, self._limits.brief_threads)

    def _client(self, read_seconds: float, attempts: int, connections: int) -> "S3Client":
        config = Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            connect_timeout=self._limits.connect_seconds,
            read_timeout=read_seconds,
            retries={"total_max_attempts": attempts, "mode": "standard"},
            max_pool_connections=connections,
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

    def _abort(self, bucket: str, upload: "MultipartUploadTypeDef") -> None:
        with contextlib.suppress(*self._unknown_upload):  # those of SeaweedFS go with the bucket
            self._s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])

    def _delete_whole(self, bucket: str) -> bool:
        """SeaweedFS takes along what is in it, whatever its name; other stores have us empty it first: False."""
        try:
            self._s3.delete_bucket(Bucket=bucket)
        except ClientError as error:
            if code_of(error) != "BucketNotEmpty":
                raise
            return False
        return True

    def _versions(self, bucket: str) -> "builtins.list[ObjectIdentifierTypeDef]":
        page = self._s3.list_object_versions(Bucket=bucket, MaxKeys=_DELETED_AT_ONCE)
        found = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        return [{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in found]

    def _objects(self, bucket: str) -> "builtins.list[ObjectIdentifierTypeDef]":
        page = self._s3.list_objects_v2(Bucket=bucket, MaxKeys=_DELETED_AT_ONCE)
        return [{"Key": entry["Key"]} for entry in page.get("Contents", [])]

    def _delete_all(self, bucket: str, doomed: "builtins.list[ObjectIdentifierTypeDef]") -> None:
        together = [one for one in doomed if not _UNSPELT.search(one["Key"])]
        if together:
            answer = self._s3.delete_objects(Bucket=bucket, Delete={"Objects": together, "Quiet": True})
            for failed in answer.get("Errors", []):
                raise Forbidden(
                    f"could not delete {bucket}/{failed.get('Key')}: {failed.get('Code')}",
                    hint="the object may be locked, or belong to someone else",
                )
        for one in doomed:
            if one not in together:
                self._s3.delete_object(Bucket=bucket, **one)  # type: ignore[misc]

    def _list(self, s3: "S3Client", bucket: str, prefix: str, page: str, limit: int) -> ObjectPage:
        more = {"ContinuationToken": page} if page else {}
        answer = s3.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=limit, **more)  # type: ignore[arg-type]
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
        return None if unknown and not unknown.isdisjoint(one["UploadId"] for one in self._uploads(bucket)) else size

    def _uploads(self, bucket: str) -> "builtins.list[MultipartUploadTypeDef]":
        return self._s3.list_multipart_uploads(Bucket=bucket).get("Uploads", [])

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
