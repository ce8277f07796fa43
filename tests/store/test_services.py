"""Services are kept with their secrets sealed, and a change never overwrites another unseen."""

from dataclasses import replace

import msgspec
import pytest
import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services import Record, Service, ServiceBusy, ServiceExists
from hansa.store import Database, ServiceStore


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


async def test_no_secret_is_readable_in_the_database(database: Database) -> None:
    store = ServiceStore(database, Vault([Vault.new_key()]))
    await store.add(record(), {"environment.secrets.A": "s3cret"})
    rows = await database.read(lambda c: c.execute(sa.text("select * from services")).all())
    assert "s3cret" not in repr(rows)


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
