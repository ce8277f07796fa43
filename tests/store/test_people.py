"""One record per user and one user per namespace, whoever is quicker."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from hansa.identity import claim_namespace
from hansa.identity.errors import AnotherPerson
from hansa.storage import PersonRecord
from hansa.store import Database, make_engine
from hansa.store.people import PeopleStore

PERSON = PersonRecord("alice@example.org", "Älice", "https://idp", "alice@example.org", "", b"\x00sealed\xff", 1.5)


async def add(store: PeopleStore, person: PersonRecord) -> PersonRecord:
    return await store.add(person, lambda owner_of: claim_namespace("oscar-svc", person.uid, owner_of))


async def test_the_first_record_stays(database: Database) -> None:
    store = PeopleStore(database)
    first = await add(store, PERSON)
    assert first.namespace
    assert await add(store, replace(PERSON, sealed=b"other")) == first
    assert await store.all() == [first]


@pytest.mark.parametrize("other", [{"issuer": "https://other"}, {"subject": "somebody"}])
async def test_a_uid_is_never_handed_to_another_person(database: Database, other: dict[str, Any]) -> None:
    store = PeopleStore(database)
    first = await add(store, PERSON)
    with pytest.raises(AnotherPerson):
        await add(store, replace(PERSON, **other))
    assert await store.all() == [first]


async def test_managers_on_one_database_agree(database: Database, database_url: str) -> None:
    """Two processes' worth of connections, users whose names want the same namespace, all at once."""
    other = Database(make_engine(database_url))
    other.start()
    try:
        wanted = [replace(PERSON, uid=f"62bb11b4-{number}", subject=str(number)) for number in range(8)]
        found = await asyncio.gather(*(add(PeopleStore(one), person) for person in wanted for one in (database, other)))
        assert len({person.namespace for person in found}) == 8
        assert {person.uid: person for person in found} == {
            person.uid: person for person in await PeopleStore(database).all()
        }
        assert set(found) == set(await PeopleStore(other).all())
    finally:
        await other.close()
