"""Services are kept with their secrets sealed, and a change never overwrites another unseen."""

import asyncio
import time
from collections.abc import Awaitable
from dataclasses import replace

import msgspec
import pytest
import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services import Federation, Member, Record, Service, ServiceBusy, ServiceExists
from hansa.store import Database, DatabaseDown, ServiceStore, make_engine, schema


def record(name: str = "gray") -> Record:
    service = Service(name=name, image="debian", script="true", owner="alice", labels={"a": "ä"})
    return Record(service, 1, "ready", False, (name,), 1.0, 1.0)


async def test_what_was_written_is_read_after_a_restart(database: Database) -> None:
    vault = Vault([Vault.new_key()])
    store = ServiceStore(database, vault)
    await store.add(record(), {"environment.secrets.A": "s3cret"})
    fresh = ServiceStore(database, vault)
    await fresh.load()
    assert fresh.get("gray") == record()
    assert fresh.secrets("gray") == {"environment.secrets.A": "s3cret"}


async def test_whose_its_buckets_were_and_where_its_members_is_read_after_a_restart(database: Database) -> None:
    vault = Vault([Vault.new_key()])
    store = ServiceStore(database, vault)
    await store.add(record(), {})
    noted = replace(record(), bucket_owners={"gray": "alice", "shared": "bob"}, endpoints={"visby": "https://visby"})
    meant = await store.replace(noted, {}, 1)
    fresh = ServiceStore(database, vault)
    await fresh.load()
    assert fresh.get("gray") == meant
    assert fresh.secrets("gray") == {}


async def test_a_service_kept_by_an_earlier_release_knows_nothing_of_them(database: Database) -> None:
    vault = Vault([Vault.new_key()])
    await ServiceStore(database, vault).add(record(), {})
    earlier = vault.seal({"kept.token": "t0ken", "kept.headers": "[]"})
    await database.write(lambda c: c.execute(sa.text("update services set sealed = :sealed"), {"sealed": earlier}))
    fresh = ServiceStore(database, vault)
    await fresh.load()
    kept = fresh.get("gray")
    assert kept is not None
    assert (kept.service.token, kept.bucket_owners, kept.endpoints) == ("t0ken", {}, {})


async def test_no_secret_is_readable_in_the_database(database: Database) -> None:
    vault = Vault([Vault.new_key()])
    store = ServiceStore(database, vault)
    members = (
        Member(type="endpoint", url="https://x", headers={"X-Key": "h3ader"}),
        Member(type="oscar", cluster_id="b"),
    )
    service = msgspec.structs.replace(record().service, token="t0ken", federation=Federation(members=members))
    await store.add(replace(record(), service=service), {"environment.secrets.A": "s3cret"})
    rows = await database.read(lambda c: c.execute(sa.text("select * from services")).all())
    assert not any(word in repr(rows) for word in ("s3cret", "t0ken", "h3ader"))
    again = ServiceStore(database, vault)
    await again.load()
    kept = again.get("gray")
    assert kept is not None
    assert kept.service == service
    assert again.secrets("gray") == {"environment.secrets.A": "s3cret"}


async def test_a_name_is_taken_once(database: Database) -> None:
    store = ServiceStore(database, Vault([Vault.new_key()]))
    await store.add(record(), {})
    with pytest.raises(ServiceExists):
        await store.add(record(), {})
    stranger = ServiceStore(database, Vault([Vault.new_key()]))  # knows nothing: the row itself refuses
    with pytest.raises(ServiceExists):
        await stranger.add(record(), {})


async def test_the_slower_of_two_changes_is_told(database: Database) -> None:
    store = ServiceStore(database, Vault([Vault.new_key()]))
    await store.add(record(), {})
    old = store.get("gray")
    assert old is not None
    changed = replace(old, service=msgspec.structs.replace(old.service, cpu="1"))
    assert (await store.replace(changed, {}, old.version)).version == 2
    with pytest.raises(ServiceBusy):
        await store.replace(old, {}, old.version)
    kept = store.get("gray")
    assert kept is not None
    assert kept.service.cpu == "1"
    await store.remove("gray")
    assert store.get("gray") is None


async def lost_answer(database: Database, change: Awaitable[object]) -> None:
    """The change is committed, but so late that whoever asked for it was told that the database is away."""
    told = await asyncio.gather(database.write(lambda c: time.sleep(0.5)), change, return_exceptions=True)
    assert [type(one) for one in told] == [DatabaseDown, DatabaseDown]
    await asyncio.sleep(0.5)


async def test_a_change_whose_answer_got_lost_can_be_repeated(database_url: str) -> None:
    engine = make_engine(database_url)
    schema.upgrade(engine)
    database = Database(engine, patience=0.2)
    database.start()
    try:
        vault = Vault([Vault.new_key()])
        store = ServiceStore(database, vault)
        await lost_answer(database, store.add(record(), {}))
        assert store.get("gray") is None
        await store.add(record(), {})
        changed = replace(record(), service=msgspec.structs.replace(record().service, cpu="1"))
        await lost_answer(database, store.replace(changed, {}, 1))
        assert (await store.replace(changed, {}, 1)).version == 2
        fresh = ServiceStore(database, vault)
        await fresh.load()
        assert fresh.get("gray") == store.get("gray")
    finally:
        await database.close()
