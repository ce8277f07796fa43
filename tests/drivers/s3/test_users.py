"""Are the embedded store's users kept apart, and is its user administration closed to strangers?"""

import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from contracts.direct_use import DirectUseContract
from contracts.object_store import StoreUsersContract, fresh_name
from hansa.drivers.s3 import OpenStore, StoreUnreachable
from hansa.drivers.s3.seaweed_rpc import Filer
from hansa.drivers.s3.users import SeaweedUsers
from hansa.kernel.errors import Forbidden
from hansa.storage import Keys, Reach

if TYPE_CHECKING:  # the plug-in below must be the first to import it
    from real.object_store import RunningStore

pytest_plugins = ("real.object_store",)


class TestEmbedded(DirectUseContract, StoreUsersContract):
    @pytest.fixture
    def opened(self, object_store: OpenStore) -> OpenStore:
        return object_store


async def test_a_stranger_cannot_make_users(object_store_server: "RunningStore") -> None:
    forged = replace(object_store_server.filer, admin_key=secrets.token_urlsafe(32))
    users = SeaweedUsers(forged, object_store_server.keys)
    try:
        with pytest.raises(Forbidden):
            await users.ensure_user(Keys("intruder", "long-enough-secret"))
    finally:
        await users.close()


UNLISTED = (".uploads/k", "a/.uploads/k", ".uploads/a/k", "k.versions/v_1", "a/k.versions/b/c", ".versions/k")
LISTED = ("uploads/k", "a.uploads/k", ".uploads-of/k", "k.versions", "versions/v_1", "k.versions-of/k")


@pytest.mark.parametrize("whose", ["own", "published", "lent"])
async def test_nobody_adds_what_no_listing_shows(object_store: OpenStore, whose: str) -> None:
    bucket, keys = f"{fresh_name()}.versions", Keys(f"hider-{secrets.token_hex(4)}", "long-enough-secret")
    users, loans = object_store.users, object_store.loans
    assert loans is not None
    await object_store.store.create_bucket(bucket)
    await users.ensure_user(keys)
    if whose == "own":
        await users.grant(keys.access_key, frozenset({bucket}))
    elif whose == "published":
        await users.publish(frozenset({bucket}))
    lent = await loans.lend(bucket, Reach(write=frozenset({(bucket, "")})))
    person = object_store.as_user(lent if whose == "lent" else keys)
    try:
        for key in UNLISTED:
            with pytest.raises(Forbidden):
                await person.put(bucket, key, b"hidden")
        for key in LISTED:
            await person.put(bucket, key, b"seen")
        assert {one.key for one in (await object_store.store.list(bucket)).objects} == set(LISTED)
    finally:
        await person.close()
        await loans.end(bucket)
        await users.publish(frozenset())
        await users.remove_user(keys.access_key)
        await object_store.store.delete_bucket(bucket)


async def test_many_buckets_fit_into_one_grant(object_store: OpenStore) -> None:
    bucket = fresh_name()
    await object_store.store.create_bucket(bucket)
    keys = Keys(f"collector-{secrets.token_hex(4)}", "long-enough-secret")
    await object_store.users.ensure_user(keys)
    person = object_store.as_user(keys)
    try:
        others = {f"other-{number}" for number in range(500)}
        await object_store.users.grant(keys.access_key, frozenset({bucket, *others}))
        await person.put(bucket, "k", b"x")
    finally:
        await person.close()
        await object_store.users.remove_user(keys.access_key)
        await object_store.store.delete_bucket(bucket)


async def test_publishing_costs_the_same_for_many_users(object_store: OpenStore) -> None:
    mark = secrets.token_hex(4)
    names = [f"user-{number}-{mark}" for number in range(50)]
    for name in names:
        await object_store.users.ensure_user(Keys(name, "long-enough-secret"))
    try:
        began = time.perf_counter()
        await object_store.users.publish(frozenset({fresh_name()}))
        assert time.perf_counter() - began < 1.0  # one call of a few milliseconds, however busy this machine
    finally:
        await object_store.users.publish(frozenset())
        for name in names:
            await object_store.users.remove_user(name)


async def test_a_store_that_is_away_is_temporary() -> None:
    users = SeaweedUsers(Filer("127.0.0.1:1", "a-key-of-thirty-two-characters!!"), Keys("root", "secret-key"))
    try:
        with pytest.raises(StoreUnreachable):
            await users.publish(frozenset())
    finally:
        await users.close()


def test_an_awkward_subject_gets_a_derived_key() -> None:
    assert Keys.of_user("62bb11b4@egi.eu", "s").access_key == "62bb11b4@egi.eu"
    assert Keys.of_user("auth0|a:b", "s").access_key == "auth0|a:b"
    derived = Keys.of_user("https://orcid.org/0", "s").access_key
    assert derived == Keys.of_user("https://orcid.org/0", "other").access_key
    assert derived != Keys.of_user("https://orcid.org/1", "s").access_key
    assert derived.startswith("uid-")
