"""Refresh tokens and the trail beside them: sealed, in one transaction, the same on both databases."""

from dataclasses import replace

import pytest
import sqlalchemy as sa

from hansa.identity import Vault
from hansa.identity.errors import VaultLocked
from hansa.services.credentials import AuditEntry, Lineage
from hansa.store import AuditStore, Database, LineageStore
from hansa.store.tables import lineages

LINE = Lineage(
    mark="a" * 64,
    issuer="https://one",
    token="very-secret",
    obtained=1.0,
    renewed=2.0,
    rotates=None,
    state="ok",
    since=1.0,
)
ENTRY = AuditEntry(5.0, "alice@test", "token.rotated", "hello", "with https://one")


async def test_a_line_comes_back_as_it_was(database: Database) -> None:
    store = LineageStore(database, Vault([Vault.new_key()]))
    assert await store.get(LINE.mark) is None
    await store.save(LINE, ENTRY)
    assert await store.get(LINE.mark) == LINE
    after = replace(LINE, token="", state="expired-or-revoked", reason="gone", rotates=True, begun=3.0)
    await store.save(after)
    assert await store.get(LINE.mark) == after
    assert await AuditStore(database).of("hello") == [ENTRY]


async def test_a_sealed_token_opens_in_its_own_row_only(database: Database) -> None:
    store = LineageStore(database, Vault([Vault.new_key()]))
    await store.save(LINE)
    await database.write(lambda connection: connection.execute(sa.update(lineages).values(mark="b" * 64)))
    with pytest.raises(VaultLocked):
        await store.get("b" * 64)


async def test_what_was_seen_of_an_issuer(database: Database) -> None:
    store = LineageStore(database, Vault([Vault.new_key()]))
    await store.save(LINE)
    assert await store.rotates("https://one") is None
    await store.save(replace(LINE, mark="b" * 64, rotates=False))
    assert await store.rotates("https://one") is False
    await store.save(replace(LINE, mark="c" * 64, rotates=True))
    assert await store.rotates("https://one") is True
    assert await store.rotates("https://two") is None


async def test_forgetting(database: Database) -> None:
    store = LineageStore(database, Vault([Vault.new_key()]))
    for mark, renewed, since in (("a", 2.0, 1.0), ("b", 9.0, 1.0), ("c", 0.0, 9.0), ("d", 2.0, 1.0)):
        await store.save(replace(LINE, mark=mark * 64, renewed=renewed, since=since))
    await store.forget(5.0, frozenset({"d" * 64}))
    left = [mark for mark in "abcd" if await store.get(mark * 64) is not None]
    assert left == ["b", "c", "d"]


async def test_the_trail_newest_first(database: Database) -> None:
    trail = AuditStore(database)
    for at in (1.0, 2.0, 3.0):
        await trail.note(replace(ENTRY, at=at, detail="x" * 5000))
    await trail.note(replace(ENTRY, subject="other"))
    assert [one.at for one in await trail.of("hello")] == [3.0, 2.0, 1.0]
    assert [one.at for one in await trail.of("hello", since=2.0)] == [3.0, 2.0]
    assert [one.at for one in await trail.of("hello", most=1)] == [3.0]
