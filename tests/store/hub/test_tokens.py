"""Tokens to join: used once whoever asks at the same time, not after their time, gone when revoked."""

import asyncio
import time
from dataclasses import replace

import pytest
import sqlalchemy as sa

from hansa.federation import Fence, Note, TokenRecord
from hansa.federation.errors import LeaseLost
from hansa.store import Database
from hansa.store.hub import ClusterStore, LeaseStore, TokenStore
from hansa.store.hub.tables import tokens

NOTE = Note("", "token", "made")


def token(ident: str = "a", *, seconds: float = 60.0) -> TokenRecord:
    now = time.time()
    return TokenRecord(ident, "d" * 64, "", True, "admin", now, now + seconds)


async def test_a_token_comes_back_as_it_was_and_its_making_is_told(database: Database) -> None:
    store = TokenStore(database)
    assert await store.get("a") is None
    made = token()
    await store.add(made, NOTE)
    assert await store.get("a") == made
    assert await store.all() == [made]
    (told,) = await ClusterStore(database, "hub").changes()
    assert (told.kind, told.detail) == ("token", "made")


async def test_of_many_at_once_one_gets_it(database: Database) -> None:
    """Each in a store of its own, so that on PostgreSQL they really meet in the database."""
    await TokenStore(database).add(token(), NOTE)
    others = [Database(sa.create_engine(database.engine.url)) for _ in range(4)] if database.kind != "sqlite" else []
    try:
        for one in others:
            one.start()
        stores = [TokenStore(one) for one in (*others, database) for _ in range(3)]
        tries = (
            one.use("a", cluster=f"c{number}", key=f"{number:064}", life=number) for number, one in enumerate(stores, 1)
        )
        won = await asyncio.gather(*tries)
    finally:
        for one in others:
            await one.close()
    assert won.count(True) == 1
    winner = won.index(True) + 1
    found = await TokenStore(database).get("a")
    assert found is not None
    assert (found.used_by, found.life, found.used_key) == (f"c{winner}", winner, f"{winner:064}")
    assert found.used is not None


async def test_not_after_its_time_nor_when_revoked(database: Database) -> None:
    store = TokenStore(database)
    await store.add(token("late", seconds=-1), NOTE)
    await store.add(token("good"), NOTE)
    assert not await store.use("late", cluster="c", key="k", life=1)
    assert await store.revoke("good", NOTE)
    assert not await store.revoke("good", NOTE)
    assert not await store.use("good", cluster="c", key="k", life=1)
    assert not await store.use("never", cluster="c", key="k", life=1)


async def test_old_ones_are_forgotten_by_who_may(database: Database) -> None:
    store = TokenStore(database)
    await store.add(token("old", seconds=-100), NOTE)
    await store.add(token("new"), NOTE)
    fence = await LeaseStore(database, "hub").hold("authority", 30)
    assert fence is not None
    with pytest.raises(LeaseLost):
        await store.forget(time.time(), Fence("authority", "hub", fence.epoch - 1))
    assert await store.forget(time.time() - 50, fence) == 1
    assert [one.id for one in await store.all()] == ["new"]


async def test_what_is_stored_does_not_show_in_print(database: Database) -> None:
    assert "d" * 64 not in repr(token())
    await TokenStore(database).add(replace(token(), digest="e" * 64), NOTE)
    row = await database.read(lambda connection: connection.execute(sa.select(tokens)).one())
    assert row.digest == "e" * 64
