"""Buckets are whose they should be, in our records and in the store, whatever fails in between."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import httpx
import pytest

from hansa.drivers.s3 import OpenStore, S3Store
from hansa.identity import Caller, Vault
from hansa.kernel.clock import SystemClock
from hansa.kernel.errors import Forbidden, NotFound, Temporary
from hansa.storage import BadBucket, Bucket, BucketExists, BucketQuota, Reach, SureLoans, link_request
from hansa.store import Database, LoanEndStore
from storage.furnished import Away, HandClock, Room, user

pytest_plugins = ("real.object_store",)

ADMIN = Caller.admin()


async def opens(room: Room, store: OpenStore, caller: Caller, bucket: str) -> bool:
    """Whether the store itself lets this user in with their own keys."""
    theirs: S3Store = store.as_user(await room.people.keys(caller))
    try:
        await theirs.put(bucket, "probe", b"x")
        await theirs.list(bucket)
        return True
    except (Forbidden, NotFound):
        return False
    finally:
        await theirs.close()


async def test_a_private_bucket_is_its_owners(
    room: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str
) -> None:
    await room.buckets.create(alice, name)
    assert await opens(room, object_store, alice, name)
    assert not await opens(room, object_store, bob, name)
    assert [one.name for one in await room.buckets.listing(alice)] == [name]
    assert await room.buckets.listing(bob) == []
    with pytest.raises(Forbidden):
        await room.buckets.get(bob, name)
    with pytest.raises(Forbidden):
        await room.buckets.delete(bob, name)


class TestKeysOfRuns:
    """What a run was lent ends when the people behind it may not use the bucket any more."""

    @pytest.fixture
    async def loans(self, database: Database, object_store: OpenStore) -> AsyncIterator[SureLoans]:
        assert object_store.loans is not None
        made = SureLoans(object_store.loans, LoanEndStore(database), SystemClock())
        yield made
        for one in ("alice's run", "bob's run"):
            await made.end(one)

    @pytest.fixture
    def room(self, room: Room, loans: SureLoans) -> Room:
        return replace(room, runs=loans)

    async def reads(self, room: Room, store: OpenStore, caller: Caller, bucket: str, loans: SureLoans) -> "Reads":
        def require_rights() -> None:
            if not room.buckets.may_use(caller.uid, bucket):
                raise Forbidden("not any more")

        reach = Reach(share=frozenset({(bucket, "")}), require_rights=require_rights)
        return Reads(store.as_user(await loans.lend(f"{caller.name.lower()}'s run", reach)), bucket)

    @pytest.mark.parametrize("how", ["private", "restricted", "with its service"])
    async def test_a_bucket_that_is_shared_no_more_is_shut_for_runs_of_those_it_was_shared_with(
        self, room: Room, object_store: OpenStore, loans: SureLoans, alice: Caller, bob: Caller, name: str, how: str
    ) -> None:
        service = "gray" if how == "with its service" else ""
        if service:
            await room.people.ensure(alice)
            owned = {"owner": alice.uid, "owner_name": "Alice", "service": service}
            await room.buckets.make([name], **owned, visibility="restricted", allowed_users=[bob.uid])
        else:
            await room.buckets.create(alice, name, "restricted", [bob.uid])
        await object_store.store.put(name, "x", b"x")
        hers = await self.reads(room, object_store, alice, name, loans)
        his = await self.reads(room, object_store, bob, name, loans)
        try:
            assert await his.works()
            if service:
                await room.buckets.share_made([name], service, alice.uid, "private", [])
            else:
                await room.buckets.update(alice, name, how, ["carol"])
            assert not await his.works()
            assert await hers.works()  # a run that may go on is not disturbed
        finally:
            await his.store.close()
            await hers.store.close()
            await room.buckets.delete(alice, name)


@dataclass(frozen=True)
class Reads:
    """A run that has keys."""

    store: S3Store
    bucket: str

    async def works(self) -> bool:
        try:
            return await self.store.get(self.bucket, "x") == b"x"
        except Forbidden:
            return False


async def test_sharing_follows_every_change(
    room: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str
) -> None:
    await room.people.keys(bob)
    await room.buckets.create(alice, name, "restricted", [bob.uid])
    assert await opens(room, object_store, bob, name)
    await room.buckets.update(alice, name, "private")
    assert not await opens(room, object_store, bob, name)
    await room.buckets.update(alice, name, "public")
    assert await opens(room, object_store, bob, name)
    assert await opens(room, object_store, user("carol"), name)
    await room.buckets.update(alice, name, "restricted", [])
    assert not await opens(room, object_store, bob, name)
    assert await opens(room, object_store, alice, name)


async def test_somebody_listed_before_their_first_visit_gets_in_with_it(
    room: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str
) -> None:
    await room.buckets.create(alice, name, "restricted", [f" {bob.uid} ", ""])
    assert await opens(room, object_store, bob, name)


async def test_only_the_owner_or_the_admin_changes_a_bucket(room: Room, alice: Caller, bob: Caller, name: str) -> None:
    await room.buckets.create(alice, name, "public")
    with pytest.raises(Forbidden):
        await room.buckets.update(bob, name, "private")
    await room.buckets.update(ADMIN, name, "private")
    bucket = room.register.get(name)
    assert bucket is not None
    assert bucket.owner == alice.uid


async def test_a_name_is_given_once(room: Room, alice: Caller, bob: Caller, name: str) -> None:
    made = await asyncio.gather(
        *(room.buckets.create(caller, name) for caller in (alice, bob, alice)), return_exceptions=True
    )
    assert [type(outcome) for outcome in made].count(BucketExists) == 2


async def test_the_quota_of_buckets_holds_also_for_requests_at_once(room: Room, alice: Caller, name: str) -> None:
    made = await asyncio.gather(
        *(room.buckets.create(alice, f"{name}-{number}") for number in range(6)), return_exceptions=True
    )
    assert [type(outcome) for outcome in made].count(BucketQuota) == 3
    assert room.buckets.count(alice.uid) == 3
    with pytest.raises(BucketQuota):
        await room.buckets.make([f"{name}-x"], owner=alice.uid, owner_name="", service="gray")
    for number in range(6):
        await room.buckets.create(ADMIN, f"{name}-admin-{number}")  # the admin is never limited


async def test_what_was_in_the_store_before_us_is_the_admins_alone(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    await object_store.store.create_bucket(name)
    await object_store.store.put(name, "old", b"data")
    try:
        with pytest.raises(BucketExists):
            await room.buckets.create(alice, name)
        with pytest.raises(Forbidden):
            await room.buckets.make([name], owner=alice.uid, owner_name="", service="gray")
        with pytest.raises(NotFound):
            await room.buckets.get(alice, name)
        seen = {one.name: one for one in await room.buckets.listing(ADMIN)}
        assert (seen[name].owner, seen[name].visibility) == ("", "")
        assert [one.key for one in (await room.buckets.get(ADMIN, name)).page.objects] == ["old"]
        assert await room.buckets.make([name], owner=ADMIN.uid, owner_name="", service="gray") == ()
        await room.buckets.remove_made([name], "gray", ADMIN.uid)
        assert await object_store.store.get(name, "old") == b"data"
    finally:
        await object_store.store.delete_bucket(name)


async def test_a_bucket_goes_with_everything_in_it(
    room: Room, object_store: OpenStore, alice: Caller, name: str
) -> None:
    await room.buckets.create(alice, name)
    await object_store.store.put(name, "a/b", b"x")
    await room.buckets.delete(alice, name)
    assert name not in await object_store.store.buckets()
    assert not room.buckets.exists(name)
    with pytest.raises(NotFound):
        await room.buckets.delete(alice, name)


async def test_services_make_and_take_back_only_their_own(
    room: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str
) -> None:
    own = f"{name}-own"
    await room.buckets.create(alice, own)
    await object_store.store.put(own, "precious", b"x")
    made = await room.buckets.make([name, own], owner=alice.uid, owner_name="Alice", service="gray")
    assert made == (name,)
    with pytest.raises(Forbidden):
        await room.buckets.update(alice, name, "public")  # the service's, not to be modified
    with pytest.raises(Forbidden):
        await room.buckets.make([name], owner=bob.uid, owner_name="Bob", service="other")
    with pytest.raises(Forbidden):
        room.buckets.check_usable(bob, name)
    room.buckets.check_usable(bob, f"{name}-nobodys")
    await room.buckets.remove_made([name, own], "other", alice.uid)
    assert room.buckets.exists(name)
    await room.buckets.remove_made([name, own], "gray", alice.uid)
    assert not room.buckets.exists(name)
    assert await object_store.store.get(own, "precious") == b"x"


async def test_a_service_of_somebody_else_with_that_name_changes_nothing(
    room: Room, alice: Caller, bob: Caller, name: str
) -> None:
    """A bucket may outlive the service it was made for, and then anybody may take the service's name."""
    await room.buckets.make([name], owner=alice.uid, owner_name="Alice", service="gray")
    await room.buckets.share_made([name], "gray", bob.uid, "public", ())
    assert not room.buckets.may_use(bob.uid, name)
    await room.buckets.remove_made([name], "gray", bob.uid)
    assert room.buckets.exists(name)
    await room.buckets.share_made([name], "gray", alice.uid, "public", ())
    assert room.buckets.may_use(bob.uid, name)


async def test_a_failed_make_leaves_nothing(
    room: Room, object_store: OpenStore, away: Away, alice: Caller, name: str
) -> None:
    await room.people.ensure(alice)
    cut_off = await room.restarted(away.store, away.users)
    with pytest.raises(Temporary):
        await cut_off.buckets.make([name], owner=alice.uid, owner_name="", service="gray")
    back = await room.restarted()
    await back.buckets.converge()
    assert not back.buckets.exists(name)
    assert name not in await object_store.store.buckets()


async def test_a_make_that_the_store_refuses_is_taken_back(
    room: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str
) -> None:
    """The store opened with a mere user's keys: it answers, and lets nobody make a bucket."""
    await room.people.ensure(alice)
    powerless = object_store.as_user(await room.people.keys(bob))
    try:
        refused = await room.restarted(powerless)
        with pytest.raises(Forbidden):
            await refused.buckets.make([name], owner=alice.uid, owner_name="", service="gray")
        assert refused.buckets.count(alice.uid) == 1  # until it is surely gone
        assert await refused.buckets.listing(alice) == []
        assert not refused.buckets.may_use(alice.uid, name)
    finally:
        await powerless.close()
    back = await room.restarted()
    await back.buckets.remove_made([name], "gray", alice.uid)
    assert not back.buckets.exists(name)
    assert await back.buckets.make([name], owner=alice.uid, owner_name="", service="gray") == (name,)
    room.register = back.register


async def test_what_a_crash_left_over_is_finished(
    room: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str
) -> None:
    """The rows as a crash leaves them, between our record and the store."""
    await room.people.ensure(alice)
    await room.people.keys(bob)
    half_made = Bucket(f"{name}-new", alice.uid, "", "restricted", (bob.uid,), "", "creating", 1.0)
    half_gone = Bucket(f"{name}-old", alice.uid, "", "public", (), "", "deleting", 1.0)
    lost = Bucket(f"{name}-lost", alice.uid, "", "private", (), "", "ready", 1.0)
    await object_store.store.create_bucket(half_gone.name)
    await object_store.store.put(half_gone.name, "k", b"x")
    await room.register.add([half_made, half_gone, lost])
    after = await room.restarted()
    assert await after.buckets.converge() == []
    present = await object_store.store.buckets()
    assert half_made.name in present
    assert half_gone.name not in present
    assert lost.name in present
    assert await opens(after, object_store, bob, half_made.name)
    assert await opens(after, object_store, alice, lost.name)
    assert await after.buckets.converge() == []
    room.register = after.register


async def test_a_create_that_met_an_absent_store_can_be_repeated(
    room: Room, object_store: OpenStore, alice: Caller, bob: Caller, name: str
) -> None:
    await room.people.ensure(alice)
    await room.register.add([Bucket(name, alice.uid, "", "private", (), "", "creating", 1.0)])
    with pytest.raises(BucketExists):
        await room.buckets.create(bob, name)
    await room.buckets.create(alice, name, "public")
    assert await opens(room, object_store, bob, name)


async def test_a_delete_that_met_an_absent_store_hides_the_bucket_and_can_be_repeated(
    room: Room, object_store: OpenStore, alice: Caller, away: Away, name: str
) -> None:
    await room.buckets.create(alice, name)
    cut_off = await room.restarted(away.store, away.users)
    with pytest.raises(Temporary):
        await cut_off.buckets.delete(alice, name)
    assert await cut_off.buckets.listing(alice) == []
    back = await room.restarted()
    await back.buckets.delete(alice, name)
    assert name not in await object_store.store.buckets()


async def test_objects_come_in_pages(room: Room, object_store: OpenStore, alice: Caller, name: str) -> None:
    await room.buckets.create(alice, name)
    for number in range(3):
        await object_store.store.put(name, f"in/{number}", b"1234")
    view = await room.buckets.get(alice, name)
    assert [one.key for one in view.page.objects] == ["in/0", "in/1", "in/2"]
    assert (view.contents.size, view.contents.objects, view.limit) == (12, 3, 1024)
    assert (await room.buckets.get(ADMIN, name)).limit == 1024


async def test_links_work_until_the_quota_is_used_up(room: Room, alice: Caller, name: str) -> None:
    await room.buckets.create(alice, name)
    up = await room.buckets.link(alice, name, link_request("in/a.txt", "upload", 60, "text/plain"))
    down = await room.buckets.link(alice, name, link_request("in/a.txt", "download", 60))
    assert (up.method, down.method, up.expires) == ("PUT", "GET", room.clock.now() + 60)
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        (await client.put(up.url, content=b"x" * 2000, headers=dict(up.request.headers))).raise_for_status()
        assert (await client.get(down.url)).content == b"x" * 2000
    room.clock.moment += 60
    with pytest.raises(BucketQuota):
        await room.buckets.link(alice, name, link_request("in/b.txt", "upload", 60))
    await room.buckets.link(alice, name, link_request("in/a.txt", "download", 60))


async def test_where_the_store_makes_no_users_links_are_short(
    database: Database, clock: HandClock, object_store: OpenStore, alice: Caller, name: str
) -> None:
    plain = Room(database, Vault([Vault.new_key()]), clock, object_store.store, None)
    await plain.buckets.create(alice, name)
    try:
        link = await plain.buckets.link(alice, name, link_request("a", "upload", 86_400))
        assert link.expires == clock.now() + 900
        async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
            assert (await client.put(link.url, content=b"x")).status_code == 200
    finally:
        await plain.buckets.delete(alice, name)


async def test_odd_visibilities_are_refused(room: Room, alice: Caller, name: str) -> None:
    with pytest.raises(BadBucket):
        await room.buckets.create(alice, name, "secret")
    with pytest.raises(BadBucket):
        await room.buckets.create(alice, name, "restricted", ["x" * 256])
    await room.buckets.create(ADMIN, name)
    bucket = room.register.get(name)
    assert bucket is not None
    assert bucket.visibility == ""
