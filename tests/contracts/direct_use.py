"""What people do with keys of their own, past the manager: limits and links hold there too.

Stands beside `StoreUsersContract`, whose people and buckets it uses. `as_boto` is any S3 client a person may have."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from contracts.object_store import AWKWARD_NAMES, Person, fresh_name
from hansa.drivers.s3 import OpenStore
from hansa.kernel.errors import Forbidden, NotFound
from hansa.storage import Keys


def as_boto(opened: OpenStore, keys: Keys) -> Any:
    """What a person may have: any S3 client."""
    return boto3.client(
        "s3",
        endpoint_url=opened.store.reach_at,
        region_name="us-east-1",
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
    )


def refused(work: Callable[[], object]) -> str:
    """The store's code, "" if it took it."""
    try:
        work()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def begin_large(opened: OpenStore, keys: Keys, bucket: str, key: str = "large") -> str:
    return str(as_boto(opened, keys).create_multipart_upload(Bucket=bucket, Key=key)["UploadId"])


def put_part(opened: OpenStore, keys: Keys, bucket: str, upload: str, size: int = 5 * 2**20, number: int = 1) -> str:
    client = as_boto(opened, keys)
    return refused(
        lambda: client.upload_part(
            Bucket=bucket, Key="large", UploadId=upload, PartNumber=number, Body=os.urandom(size)
        )
    )


def copy(opened: OpenStore, keys: Keys, source: str, bucket: str) -> str:
    client = as_boto(opened, keys)
    return refused(lambda: client.copy_object(Bucket=bucket, Key="copied", CopySource=source))


class DirectUseContract:
    async def test_what_large_uploads_left_is_counted(self, opened: OpenStore, buckets: list[str]) -> None:
        bucket = buckets[0]
        assert await opened.store.unfinished(bucket, 5) == 0
        for number in range(3):
            begun = await asyncio.to_thread(begin_large, opened, opened.keys, bucket)
            assert await asyncio.to_thread(put_part, opened, opened.keys, bucket, begun, 5 * 2**20 + number) == ""
        assert await opened.store.unfinished(bucket, 5) == 3 * 5 * 2**20 + 3
        assert await opened.store.unfinished(bucket, 2) is None
        assert (await opened.store.list(bucket)).objects == ()
        with pytest.raises(NotFound):
            await opened.store.unfinished(fresh_name(), 5)

    async def test_a_full_bucket_takes_nothing_more_and_can_be_emptied(
        self, opened: OpenStore, people: list[Person], buckets: list[str], tmp_path: Path
    ) -> None:
        ann, ben = people
        mine, shared, other = buckets
        await opened.users.grant(ann.name, frozenset({mine, other}))
        await opened.users.publish(frozenset({shared}))
        for bucket in buckets:
            await opened.store.put(bucket, "kept", b"12345")
        (tmp_path / "big").write_bytes(os.urandom(9 * 2**20))
        begun = await asyncio.to_thread(begin_large, opened, ann.keys, mine)

        await opened.users.grant(ann.name, frozenset({mine, other}), frozenset({mine}))
        await opened.users.publish(frozenset({shared}), frozenset({shared}))
        await ann.store.put(other, "new", b"x")  # only the full ones are closed
        for person, bucket in ((ann, mine), (ann, shared), (ben, shared)):
            assert await person.store.get(bucket, "kept") == b"12345"
            assert [one.key for one in (await person.store.list(bucket)).objects] == ["kept"]
            with pytest.raises(Forbidden):
                await person.store.put(bucket, "more", b"x")
            with pytest.raises(Forbidden):
                await person.store.put(bucket, "kept", b"longer than before")
            with pytest.raises(Forbidden):
                await person.store.upload(bucket, "big", tmp_path / "big")
        assert await asyncio.to_thread(put_part, opened, ann.keys, mine, begun) == "AccessDenied"
        assert await asyncio.to_thread(copy, opened, ann.keys, f"{other}/new", mine) == "AccessDenied"
        await ann.store.delete(mine, "kept")

        await opened.users.grant(ann.name, frozenset({mine, other}))
        await ann.store.put(mine, "more", b"x")
        with pytest.raises(Forbidden):
            await ben.store.put(mine, "more", b"x")

    @pytest.mark.parametrize("key", AWKWARD_NAMES)
    async def test_a_link_is_worth_what_the_rights_of_its_signer_are(
        self, opened: OpenStore, people: list[Person], buckets: list[str], key: str
    ) -> None:
        ann, ben = people
        mine, other, _ = buckets
        await opened.users.grant(ann.name, frozenset({mine}))

        async def use(bucket: str, keys: Keys) -> list[int]:
            up = await opened.store.presign(bucket, key, "upload", 600, "text/plain", keys)
            down = await opened.store.presign(bucket, key, "download", 600, keys=keys)
            async with httpx.AsyncClient(trust_env=False) as http:
                put = await http.put(up, content=key.encode(), headers={"Content-Type": "text/plain"})
                return [put.status_code, (await http.get(down)).status_code]

        assert await use(mine, ann.keys) == [200, 200]
        assert await use(mine, ben.keys) == [403, 403]
        assert await use(other, ann.keys) == [403, 403]
        link = await opened.store.presign(mine, key, "download", 600, keys=ann.keys)
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.get(link)).content == key.encode()
            await opened.users.grant(ann.name, frozenset())
            assert (await http.get(link)).status_code == 403  # at once
            await opened.users.grant(ann.name, frozenset({mine}))
            assert (await http.get(link)).status_code == 200
            await opened.users.remove_user(ann.name)
            assert (await http.get(link)).status_code == 403
