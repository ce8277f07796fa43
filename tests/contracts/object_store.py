"""What every object store must do, whoever made it: the suites for `ObjectStore` and `StoreUsers`.

A driver's test module subclasses them and offers the fixture `opened`: a store with the administrator's
keys and its user administration. Buckets get fresh names, so one server serves all tests at once."""

import asyncio
import hashlib
import json
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from hansa.drivers.s3 import OpenStore, S3Store
from hansa.kernel.errors import Forbidden, Invalid, NotFound
from hansa.storage import Keys, ObjectStore

AWKWARD_NAMES = [
    "in/plain.txt",
    "in/a b.txt",
    "in/a+b.txt",
    "in/señor/ß ü.txt",
    "in/日本.txt",
    "in/50%.txt",
    "in/a&b=c#d?.txt",
]
PATIENCE = 10.0


def fresh_name() -> str:
    return f"test-{secrets.token_hex(8)}"


@pytest.fixture
async def bucket(opened: OpenStore) -> AsyncIterator[str]:
    name = fresh_name()
    await opened.store.create_bucket(name)
    yield name
    await opened.store.delete_bucket(name)


@pytest.fixture
def store(opened: OpenStore) -> ObjectStore:
    return opened.store


class ObjectStoreContract:
    async def test_answers(self, store: ObjectStore) -> None:
        await store.check()

    @pytest.mark.parametrize("key", AWKWARD_NAMES)
    async def test_keeps_names_and_content(self, store: ObjectStore, bucket: str, key: str) -> None:
        await store.put(bucket, key, key.encode(), "text/plain")
        assert await store.get(bucket, key) == key.encode()
        found = await store.head(bucket, key)
        assert (found.key, found.size) == (key, len(key.encode()))
        assert found.etag == hashlib.md5(key.encode()).hexdigest()
        assert (await store.list(bucket, "in/")).objects == (found,)

    async def test_overwrites(self, store: ObjectStore, bucket: str) -> None:
        await store.put(bucket, "k", b"one")
        await store.put(bucket, "k", b"two, and longer")
        assert await store.get(bucket, "k") == b"two, and longer"
        assert len((await store.list(bucket)).objects) == 1

    async def test_keeps_an_empty_object(self, store: ObjectStore, bucket: str) -> None:
        await store.put(bucket, "k", b"")
        assert await store.get(bucket, "k") == b""
        assert (await store.head(bucket, "k")).size == 0

    async def test_large_files_go_in_parts(self, store: ObjectStore, bucket: str, tmp_path: Path) -> None:
        source, target = tmp_path / "source", tmp_path / "target"
        source.write_bytes(os.urandom(20 * 2**20))
        await store.upload(bucket, "big.bin", source)
        await store.download(bucket, "big.bin", target)
        assert target.read_bytes() == source.read_bytes()
        found = await store.head(bucket, "big.bin")
        assert found.etag.endswith("-3")  # three parts
        assert (await store.list(bucket)).objects == (found,)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "target"]

    async def test_a_failed_download_leaves_nothing(self, store: ObjectStore, bucket: str, tmp_path: Path) -> None:
        with pytest.raises(NotFound):
            await store.download(bucket, "none", tmp_path / "target")
        assert list(tmp_path.iterdir()) == []

    async def test_lists_page_by_page(self, store: ObjectStore, bucket: str) -> None:
        wanted = [f"in/{number:02}/x" for number in range(25)]
        async with asyncio.TaskGroup() as tasks:
            for key in [*wanted, "out/1", "inn"]:
                tasks.create_task(store.put(bucket, key, b"x"))
        pages = [await store.list(bucket, "in/", limit=10)]
        while pages[-1].next_page:
            pages.append(await store.list(bucket, "in/", page=pages[-1].next_page, limit=10))
        assert [len(page.objects) for page in pages] == [10, 10, 5]
        assert [each.key for page in pages for each in page.objects] == wanted

    async def test_making_a_bucket_twice_is_harmless(self, store: ObjectStore) -> None:
        name = fresh_name()
        assert await store.create_bucket(name) is True
        assert await store.create_bucket(name) is False
        assert name in await store.buckets()
        await store.delete_bucket(name)
        assert name not in await store.buckets()

    async def test_deletes_a_full_bucket(self, store: ObjectStore) -> None:
        name = fresh_name()
        await store.create_bucket(name)
        async with asyncio.TaskGroup() as tasks:
            for number in range(30):
                tasks.create_task(store.put(name, f"folder/{number}/ü x", b"x"))
        await store.put(name, "folder/", b"")
        await store.delete_bucket(name)
        assert name not in await store.buckets()
        await store.delete_bucket(name)

    async def test_a_bucket_made_again_is_empty(self, store: ObjectStore) -> None:
        name = fresh_name()
        for _ in range(2):
            await store.create_bucket(name)
            assert (await store.list(name)).objects == ()
            await store.put(name, "a/b/c", b"x")
            await store.delete_bucket(name)

    async def test_deleting_twice_is_harmless(self, store: ObjectStore, bucket: str) -> None:
        await store.put(bucket, "k", b"x")
        await store.delete(bucket, "k")
        await store.delete(bucket, "k")
        with pytest.raises(NotFound):
            await store.head(bucket, "k")

    async def test_missing_objects_and_buckets_are_not_found(
        self, store: ObjectStore, bucket: str, tmp_path: Path
    ) -> None:
        source = tmp_path / "source"
        source.write_bytes(b"x")
        nowhere = fresh_name()
        for call in (
            lambda: store.get(bucket, "none"),
            lambda: store.head(bucket, "none"),
            lambda: store.get(nowhere, "k"),
            lambda: store.head(nowhere, "k"),
            lambda: store.list(nowhere),
            lambda: store.put(nowhere, "k", b"x"),
            lambda: store.upload(nowhere, "k", source),
            lambda: store.download(nowhere, "k", tmp_path / "target"),
        ):
            with pytest.raises(NotFound) as caught:
                await call()
            assert caught.value.hint
        assert nowhere not in await store.buckets()  # a write made no bucket

    async def test_refuses_impossible_names(self, store: ObjectStore) -> None:
        with pytest.raises(Invalid):
            await store.create_bucket("Not A Bucket!")

    async def test_wrong_keys_are_refused(self, opened: OpenStore) -> None:
        stranger = opened.as_user(Keys("nobody", "not-the-secret"))
        try:
            with pytest.raises(Forbidden):
                await stranger.buckets()
            with pytest.raises(Forbidden):
                await stranger.check()
        finally:
            await stranger.close()

    async def test_a_link_uploads_and_downloads(self, store: ObjectStore, bucket: str) -> None:
        key = "in/a b+ñ.txt"
        up = await store.presign(bucket, key, "upload", 60, "text/plain")
        down = await store.presign(bucket, key, "download", 60)
        async with httpx.AsyncClient(trust_env=False) as http:
            refused = await http.put(up, content=b"hello", headers={"Content-Type": "text/html"})
            assert refused.status_code == 403
            done = await http.put(up, content=b"hello", headers={"Content-Type": "text/plain"})
            assert done.status_code == 200, done.text
            got = await http.get(down)
        assert (got.status_code, got.content) == (200, b"hello")
        assert got.headers["content-type"].startswith("text/plain")

    async def test_a_link_without_a_type_takes_any(self, store: ObjectStore, bucket: str) -> None:
        up = await store.presign(bucket, "k", "upload", 60)
        down = await store.presign(bucket, "k", "download", 60, "application/x-hansa")
        async with httpx.AsyncClient(trust_env=False) as http:
            done = await http.put(up, content=b"hello", headers={"Content-Type": "image/png"})
            assert done.status_code == 200, done.text
            assert (await http.get(down)).headers["content-type"] == "application/x-hansa"

    async def test_a_link_expires(self, store: ObjectStore, bucket: str) -> None:
        await store.put(bucket, "k", b"x")
        link = await store.presign(bucket, "k", "download", 1)
        async with httpx.AsyncClient(trust_env=False) as http, asyncio.timeout(PATIENCE):
            while (answer := await http.get(link)).status_code == 200:
                await asyncio.sleep(0.1)
        assert answer.status_code == 403

    @pytest.mark.parametrize("seconds", [0, -1, 604801])
    async def test_a_link_lives_within_bounds(self, store: ObjectStore, bucket: str, seconds: int) -> None:
        with pytest.raises(Invalid):
            await store.presign(bucket, "k", "download", seconds)


class Person:
    """A user of the store, with the store as they see it."""

    def __init__(self, opened: OpenStore, uid: str) -> None:
        self.keys = Keys.of_user(uid, secrets.token_urlsafe(24))
        self.name = self.keys.access_key
        self.store: S3Store = opened.as_user(self.keys)

    async def may_use(self, bucket: str) -> bool:
        """List, write, read and delete go together: all of them, or none."""
        outcomes: set[bool] = set()
        key = f"by/{secrets.token_hex(4)}"
        for call in (
            lambda: self.store.list(bucket),
            lambda: self.store.put(bucket, key, b"x"),
            lambda: self.store.get(bucket, key),
            lambda: self.store.delete(bucket, key),
        ):
            try:
                await call()
                outcomes.add(True)
            except Forbidden:
                outcomes.add(False)
        assert len(outcomes) == 1, f"{self.name} may do some things in {bucket} and not others"
        return outcomes.pop()


def publish_to_the_world(opened: OpenStore, keys: Keys, bucket: str) -> str:
    """Tries to let anybody read the bucket; returns the store's refusal."""
    everybody = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/*"}
    s3 = boto3.client(
        "s3",
        endpoint_url=opened.store.reach_at,
        region_name="us-east-1",
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        config=Config(s3={"addressing_style": "path"}, proxies={}),
    )
    try:
        s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [everybody]}))
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    finally:
        s3.close()
    return ""


class StoreUsersContract:
    @pytest.fixture
    async def people(self, opened: OpenStore) -> AsyncIterator[list[Person]]:
        mark = secrets.token_hex(6)
        people = [Person(opened, f"{mark}@egi.eu"), Person(opened, f"auth0|{mark}:b")]
        for person in people:
            await opened.users.ensure_user(person.keys)
        yield people
        for person in people:
            await opened.users.remove_user(person.name)
            await person.store.close()
        await opened.users.publish(frozenset())

    @pytest.fixture
    async def buckets(self, opened: OpenStore) -> AsyncIterator[list[str]]:
        names = [fresh_name() for _ in range(3)]
        for name in names:
            await opened.store.create_bucket(name)
        yield names
        for name in names:
            await opened.store.delete_bucket(name)

    async def test_each_reaches_only_what_was_granted(
        self, opened: OpenStore, people: list[Person], buckets: list[str]
    ) -> None:
        ann, ben = people
        assert [await ann.may_use(bucket) for bucket in buckets] == [False, False, False]
        await opened.users.grant(ann.name, frozenset(buckets[:2]))
        await opened.users.grant(ben.name, frozenset(buckets[1:]))
        assert [await ann.may_use(bucket) for bucket in buckets] == [True, True, False]
        assert [await ben.may_use(bucket) for bucket in buckets] == [False, True, True]
        assert set(await ann.store.buckets()) == set(buckets[:2])

    async def test_a_grant_replaces_the_former_one(
        self, opened: OpenStore, people: list[Person], buckets: list[str]
    ) -> None:
        ann, ben = people
        for granted in (buckets[:2], buckets[2:], [], [], buckets[:1]):
            await opened.users.grant(ann.name, frozenset(granted))
            assert [await ann.may_use(bucket) for bucket in buckets] == [b in granted for b in buckets]
        assert not await ben.may_use(buckets[0])

    async def test_published_buckets_are_for_all_present_and_future_users(
        self, opened: OpenStore, people: list[Person], buckets: list[str]
    ) -> None:
        ann, ben = people
        await opened.users.grant(ann.name, frozenset(buckets[:1]))
        await opened.users.publish(frozenset(buckets[1:2]))
        late = Person(opened, f"late-{secrets.token_hex(4)}")
        try:
            await opened.users.ensure_user(late.keys)
            assert [await ann.may_use(bucket) for bucket in buckets] == [True, True, False]
            assert [await ben.may_use(bucket) for bucket in buckets] == [False, True, False]
            assert [await late.may_use(bucket) for bucket in buckets] == [False, True, False]
            await opened.users.publish(frozenset(buckets[2:]))
            assert [await late.may_use(bucket) for bucket in buckets] == [False, False, True]
            await opened.users.publish(frozenset())
            await opened.users.publish(frozenset())
            assert [await late.may_use(bucket) for bucket in buckets] == [False, False, False]
            assert [await ann.may_use(bucket) for bucket in buckets] == [True, False, False]
        finally:
            await opened.users.remove_user(late.name)
            await late.store.close()

    async def test_ensuring_again_changes_only_the_secret(
        self, opened: OpenStore, people: list[Person], buckets: list[str]
    ) -> None:
        ann = people[0]
        await opened.users.grant(ann.name, frozenset(buckets[:1]))
        await opened.users.ensure_user(ann.keys)
        assert await ann.may_use(buckets[0])
        renewed = Keys(ann.name, secrets.token_urlsafe(24))
        await opened.users.ensure_user(renewed)
        again = opened.as_user(renewed)
        try:
            assert buckets[0] in await again.buckets()
            with pytest.raises(Forbidden):
                await ann.store.buckets()
        finally:
            await again.close()

    async def test_a_removed_user_is_gone_with_the_grants(
        self, opened: OpenStore, people: list[Person], buckets: list[str]
    ) -> None:
        ann = people[0]
        await opened.users.grant(ann.name, frozenset(buckets))
        await opened.users.remove_user(ann.name)
        await opened.users.remove_user(ann.name)
        with pytest.raises(Forbidden):
            await ann.store.buckets()
        await opened.users.ensure_user(ann.keys)
        assert not await ann.may_use(buckets[0])

    async def test_an_owner_cannot_open_a_bucket_to_others(
        self, opened: OpenStore, people: list[Person], buckets: list[str]
    ) -> None:
        ann = people[0]
        await opened.users.grant(ann.name, frozenset(buckets[:1]))
        with pytest.raises(Forbidden):
            await ann.store.delete_bucket(buckets[0])
        with pytest.raises(Forbidden):
            await ann.store.create_bucket(fresh_name())
        assert buckets[0] in await opened.store.buckets()
        assert await asyncio.to_thread(publish_to_the_world, opened, ann.keys, buckets[0]) == "AccessDenied"

    async def test_large_uploads_work_for_a_user(
        self, opened: OpenStore, people: list[Person], buckets: list[str], tmp_path: Path
    ) -> None:
        ann = people[0]
        await opened.users.grant(ann.name, frozenset(buckets[:1]))
        (tmp_path / "big").write_bytes(os.urandom(9 * 2**20))
        await ann.store.upload(buckets[0], "big", tmp_path / "big")
        assert (await ann.store.head(buckets[0], "big")).size == 9 * 2**20

    async def test_granting_to_nobody_is_not_found(self, opened: OpenStore) -> None:
        with pytest.raises(NotFound):
            await opened.users.grant("nobody-of-that-name", frozenset({"some-bucket"}))

    @pytest.mark.parametrize("name", ["*", "a?c", "arn:aws:s3:::x", "${aws:username}", "a/b", "ab\n", ""])
    async def test_a_bucket_name_cannot_open_others(self, opened: OpenStore, people: list[Person], name: str) -> None:
        with pytest.raises(Invalid):
            await opened.users.grant(people[0].name, frozenset({name}))
        with pytest.raises(Invalid):
            await opened.users.publish(frozenset({name}))

    @pytest.mark.parametrize("name", ["", "a", "a/b", "a b", "a,b=c", "a\nb", "-x", "é" * 4, "x" * 129])
    async def test_a_name_no_signature_carries_is_refused(self, opened: OpenStore, name: str) -> None:
        with pytest.raises(Invalid):
            await opened.users.ensure_user(Keys(name, "long-enough-secret"))

    async def test_nobody_becomes_the_administrator(self, opened: OpenStore) -> None:
        with pytest.raises(Invalid):
            await opened.users.ensure_user(Keys(opened.keys.access_key, "long-enough-secret"))
        await opened.store.check()

    async def test_any_subject_gets_working_keys(self, opened: OpenStore, buckets: list[str]) -> None:
        mark = secrets.token_hex(4)
        for uid in (f"https://orcid.org/{mark}", f"../../{mark}", f"-name\nÖ {mark}"):
            person = Person(opened, uid)
            try:
                await opened.users.ensure_user(person.keys)
                await opened.users.grant(person.name, frozenset(buckets[:1]))
                assert [await person.may_use(bucket) for bucket in buckets] == [True, False, False]
            finally:
                await opened.users.remove_user(person.name)
                await person.store.close()
