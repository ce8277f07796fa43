"""Roots of trust: sealed, changed by one at a time, and news for every hub."""

import asyncio
import time
from dataclasses import replace

import pytest
import sqlalchemy as sa

from hansa.federation import Authority, Fence, Note
from hansa.federation.errors import LeaseLost
from hansa.identity import Vault, authority
from hansa.identity.errors import VaultLocked
from hansa.store import Database
from hansa.store.hub import AuthorityStore, ClusterStore, LeaseStore
from hansa.store.hub.tables import authorities

NOTE = Note("", "authority", "a root was made")
VAULT = Vault([Vault.new_key()])


def root(old: authority.Root | None = None) -> authority.Root:
    new = authority.new_root("hansa", now=time.time(), seconds=1000)
    return authority.cross_sign(new, old) if old is not None else new


async def test_roots_come_back_as_they_were(database: Database) -> None:
    store = AuthorityStore(database, VAULT)
    assert await store.all() == []
    first = root()
    second = root(first)
    assert await store.put([Authority(first, "active", 1.0)], NOTE, expected=0)
    (kept,) = await store.all()
    assert (kept.root, kept.state, kept.since) == (first, "active", 1.0)
    assert await store.put([Authority(second, "next", 2.0)], NOTE, expected=kept.version)
    _, after = await store.all()
    assert after.root == second
    assert second.links
    assert after.version > kept.version


async def test_of_hubs_that_begin_together_one_makes_the_root(database: Database) -> None:
    store = AuthorityStore(database, VAULT)
    won = await asyncio.gather(*(store.put([Authority(root(), "active", 1.0)], NOTE, expected=0) for _ in range(4)))
    assert won.count(True) == 1
    assert len(await store.all()) == 1


async def test_a_step_decided_on_old_news_is_not_taken(database: Database) -> None:
    store = AuthorityStore(database, VAULT)
    await store.put([Authority(root(), "active", 1.0)], NOTE, expected=0)
    (active,) = await store.all()
    assert await store.put([Authority(root(active.root), "next", 2.0)], NOTE, expected=active.version)
    assert not await store.put([Authority(root(active.root), "next", 2.0)], NOTE, expected=active.version)
    assert len(await store.all()) == 2


async def test_who_lost_the_work_changes_nothing(database: Database) -> None:
    store = AuthorityStore(database, VAULT)
    fence = await LeaseStore(database, "hub").hold("authority", 30)
    assert fence is not None
    with pytest.raises(LeaseLost):
        await store.put(
            [Authority(root(), "active", 1.0)], NOTE, expected=0, fence=Fence("authority", "hub", fence.epoch - 1)
        )
    assert await store.all() == []
    assert await store.put([Authority(root(), "active", 1.0)], NOTE, expected=0, fence=fence)


async def test_keys_are_sealed_to_their_row_and_leave_with_the_root(database: Database) -> None:
    store = AuthorityStore(database, VAULT)
    await store.put([Authority(root(), "active", 1.0), Authority(root(), "retiring", 0.0)], NOTE, expected=0)
    retiring, active = await store.all()
    rows = await database.read(lambda connection: connection.execute(sa.select(authorities)).all())
    assert not any(b"PRIVATE" in bytes(row.sealed) for row in rows)
    assert await store.put([replace(retiring, state="gone")], NOTE, expected=active.version)
    gone = next(one for one in await store.all() if one.state == "gone")
    assert gone.root.key == ""
    assert gone.root.certificate == retiring.root.certificate
    swap = sa.update(authorities).where(authorities.c.id == active.root.id).values(id="77777777")
    await database.write(lambda connection: connection.execute(swap))
    with pytest.raises(VaultLocked):
        await store.all()


async def test_every_change_is_news(database: Database) -> None:
    store, clusters = AuthorityStore(database, VAULT), ClusterStore(database, "hub")
    before = await clusters.news(0)
    await store.put([Authority(root(), "active", 1.0)], NOTE, expected=0)
    after = await clusters.news(before.version)
    assert after.others == {"authorities"}
    (active,) = await store.all()
    await store.put([replace(active, state="gone")], NOTE, expected=active.version)
    assert (await clusters.news(after.version)).others == {"authorities"}
    assert [one.detail for one in await clusters.changes()] == ["a root was made"] * 2
