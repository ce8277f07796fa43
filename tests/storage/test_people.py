"""A user's first contact makes one durable record, and keys that open the store once it is there."""

import asyncio
import re

import pytest
import sqlalchemy as sa

from hansa.drivers.s3 import OpenStore
from hansa.identity import Caller, user_namespace
from hansa.kernel.errors import NotFound, Temporary
from hansa.storage import People
from hansa.store import PeopleStore
from storage.furnished import PREFIX, Away, Room

pytest_plugins = ("real.object_store",)


async def test_the_first_contact_is_remembered(room: Room, alice: Caller) -> None:
    person = await room.people.ensure(alice)
    assert person.namespace == user_namespace(PREFIX, alice.uid)
    assert person.keys.access_key == alice.uid
    assert re.fullmatch(r"[A-Za-z0-9_-]{14}", person.keys.secret_key)
    assert await room.people.ensure(alice) is person
    after = await room.restarted()
    assert await after.people.ensure(alice) == person
    assert after.people.namespace_of(alice.uid) == person.namespace


async def test_two_users_never_share_a_namespace(room: Room) -> None:
    first = Caller(kind="user", uid="62bb11b40398f7377876-one", name="One", subject="one")
    second = Caller(kind="user", uid="62bb11b40398f7377876-two", name="Two", subject="two")
    assert user_namespace(PREFIX, first.uid) == user_namespace(PREFIX, second.uid)
    people = [await room.people.ensure(caller) for caller in (first, second)]
    assert len({person.namespace for person in people}) == 2


async def test_requests_at_once_make_one_user(room: Room, alice: Caller) -> None:
    found = await asyncio.gather(*(room.people.keys(alice) for _ in range(20)))
    assert len(set(found)) == 1


async def test_two_managers_at_once_agree_on_the_keys(room: Room, alice: Caller) -> None:
    other = await room.restarted()
    ours, theirs = await asyncio.gather(room.people.ensure(alice), other.people.ensure(alice))
    assert ours == theirs


async def test_the_keys_work(room: Room, alice: Caller, name: str, object_store: OpenStore) -> None:
    await room.buckets.create(alice, name)
    person = object_store.as_user(await room.people.keys(alice))
    try:
        await person.put(name, "k", b"x")
        assert await person.get(name, "k") == b"x"
    finally:
        await person.close()


async def test_without_the_store_a_user_is_known_but_has_no_keys_yet(room: Room, alice: Caller, away: Away) -> None:
    cut_off = await room.restarted(away.store, away.users)
    person = await cut_off.people.ensure(alice)
    assert person.namespace
    with pytest.raises(Temporary):
        await cut_off.people.keys(alice)
    back = await room.restarted()
    assert await back.people.keys(alice) == person.keys


async def test_no_secret_is_readable_in_the_database(room: Room, alice: Caller) -> None:
    person = await room.people.ensure(alice)
    rows = await room.database.read(lambda link: link.execute(sa.text("select * from users")).all())
    assert person.keys.secret_key not in repr(rows)
    assert person.keys.secret_key not in repr(person)


async def test_a_service_token_stands_for_its_owner(room: Room, alice: Caller) -> None:
    token = Caller.of_service("gray", alice.uid)
    with pytest.raises(NotFound):
        await room.people.ensure(token)
    person = await room.people.ensure(alice)
    assert await room.people.ensure(token) == person


async def test_the_admin_lives_in_the_services_namespace(room: Room) -> None:
    assert (await room.people.ensure(Caller.admin())).namespace == PREFIX


async def test_a_key_tells_its_owner_also_where_it_is_derived(room: Room) -> None:
    odd = Caller(kind="user", uid="https://idp/users/ä b", name="Odd", subject="odd")
    person = await room.people.ensure(odd)
    assert person.keys.access_key != odd.uid
    assert room.people.by_key(person.keys.access_key) == person
    assert room.people.by_key("somebody-else") is None


async def test_a_namespace_that_is_somebody_elses_where_work_runs_is_not_given(room: Room, alice: Caller) -> None:
    usual = user_namespace(PREFIX, alice.uid)
    asked: list[str] = []

    async def claim(namespace: str, uid: str) -> bool:
        asked.append(namespace)
        return len(asked) == 3

    def people() -> People:
        return People(PeopleStore(room.database), room.grants, room.vault, PREFIX, room.clock, claim=claim)

    before = people()
    person = await before.ensure(alice)
    assert asked == list(dict.fromkeys((usual, *asked[1:3])))
    assert person.namespace == asked[2]
    assert before.owner_of(person.namespace) == alice.uid
    assert before.owner_of(usual) == ""
    after = people()
    await after.load()
    assert (await after.ensure(alice)).namespace == person.namespace
    assert len(asked) == 3


async def test_where_work_runs_has_to_answer_before_a_new_user_is_given_a_namespace(room: Room, alice: Caller) -> None:
    async def claim(namespace: str, uid: str) -> bool:
        raise Temporary("away")

    people = People(PeopleStore(room.database), room.grants, room.vault, PREFIX, room.clock, claim=claim)
    with pytest.raises(Temporary):
        await people.ensure(alice)
    assert not people.knows(alice.uid)
