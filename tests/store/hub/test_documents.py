"""Documents and rollouts, on both databases: one next version, conditional writes, seen in the order of commits."""

import asyncio
from dataclasses import replace

import pytest
import sqlalchemy as sa
from msgspec.structs import replace as changed

from hansa.federation import DocumentRecord, Fence, Given, Note, RolloutRecord
from hansa.federation.errors import LeaseLost
from hansa.messages.configuration import Stages
from hansa.store import Database
from hansa.store.hub import ClusterStore, DocumentStore, LeaseStore, RolloutStore
from hansa.store.hub.tables import rollouts as table


def document(version: int = 1, name: str = "base", **changes: object) -> DocumentRecord:
    body = {"settings": {"jobs": {"cpu": "2"}}, "scope": {"selector": "", "cluster": ""}}
    return replace(DocumentRecord("config", name, version, body, "admin", "wörds"), **changes)  # type: ignore[arg-type]


def rollout(version: int = 1, **more: object) -> RolloutRecord:
    first = RolloutRecord(
        document="base", version=version, former=version - 1, since=5.0, stages=Stages(soak=1.5, percentages=(50, 100))
    )
    return changed(first, **more)


@pytest.fixture
def documents(database: Database) -> DocumentStore:
    return DocumentStore(database)


@pytest.fixture
def rollouts(database: Database) -> RolloutStore:
    return RolloutStore(database)


async def test_what_was_written_is_read_as_it_was(documents: DocumentStore, rollouts: RolloutStore) -> None:
    given = {"a": Given(1.5, True, False, away=2.0, excused="no"), "b": Given(2.0, False, True, took=3.0)}
    added = await documents.add(document(), opens=rollout(given=given, kept={"c": 4}, goal=2, stage=1, reason="so"))
    assert added is not None
    record, opened = added
    assert opened is not None
    assert record.created > 1_600_000_000
    assert record.seq == opened.seq > 0
    assert opened.id > 0
    assert await documents.after(0) == [record]
    assert await rollouts.after(0) == [opened]
    assert opened.given == given
    assert await documents.after(record.seq) == []
    assert await rollouts.after(opened.seq) == []


async def test_only_the_next_version_is_taken(documents: DocumentStore) -> None:
    assert await documents.add(document(2)) is None
    assert await documents.add(document(1)) is not None
    assert await documents.add(document(1)) is None
    assert await documents.add(document(3)) is None
    assert await documents.add(document(2, removed=True)) is not None
    assert await documents.add(document(1, sort="policy")) is not None
    assert [(one.sort, one.version, one.removed) for one in await documents.after(0)] == [
        ("config", 1, False),
        ("config", 2, True),
        ("policy", 1, False),
    ]


async def test_of_many_at_once_one_is_taken(documents: DocumentStore, rollouts: RolloutStore) -> None:
    done = await asyncio.gather(*(documents.add(document(1), opens=rollout(reason=str(at))) for at in range(20)))
    (won,) = [one for one in done if one is not None]
    assert await documents.after(0) == [won[0]]
    assert await rollouts.after(0) == [won[1]]


async def test_a_version_and_the_rollout_it_ends_are_written_together_or_not_at_all(
    documents: DocumentStore, rollouts: RolloutStore
) -> None:
    first = await documents.add(document(1), opens=rollout(1))
    assert first is not None
    assert first[1] is not None
    went_on = await rollouts.put(changed(first[1], state="soaking"))
    assert went_on is not None
    stale = changed(first[1], state="stopped")
    assert await documents.add(document(2), opens=rollout(2), closes=stale) is None
    assert len(await documents.after(0)) == 1
    second = await documents.add(document(2), opens=rollout(2), closes=changed(went_on, state="stopped"))
    assert second is not None
    assert await rollouts.after(0) == [second[1]], "of each document the newest counts"
    assert await rollouts.put(changed(went_on, state="running")) is None


async def test_a_step_is_written_once(rollouts: RolloutStore, documents: DocumentStore) -> None:
    added = await documents.add(document(), opens=rollout())
    assert added is not None
    assert added[1] is not None
    steps = [changed(added[1], stage=1, reason=str(at)) for at in range(20)]
    written = [one for one in await asyncio.gather(*map(rollouts.put, steps)) if one is not None]
    assert await rollouts.after(0) == written
    assert len(written) == 1


async def test_whoever_lost_the_work_writes_nothing(
    database: Database, rollouts: RolloutStore, documents: DocumentStore
) -> None:
    added = await documents.add(document(), opens=rollout())
    assert added is not None
    assert added[1] is not None
    old = Fence("rollouts", "hub-a", 1)
    with pytest.raises(LeaseLost):
        await rollouts.put(changed(added[1], stage=1), fence=old)
    mine = await LeaseStore(database, "hub-b").hold("rollouts", 30)
    assert mine is not None
    assert await rollouts.put(changed(added[1], stage=1), fence=mine) is not None
    with pytest.raises(LeaseLost):
        await rollouts.put(changed(added[1], stage=2), fence=old)


async def test_everybody_hears_of_it(database: Database, documents: DocumentStore, rollouts: RolloutStore) -> None:
    clusters = ClusterStore(database, "hub-b")
    before = await clusters.news(0)
    added = await documents.add(document(), Note("", "config", "base version 1 written"), opens=rollout())
    assert added is not None
    assert added[1] is not None
    news = await clusters.news(before.version)
    assert news.version == added[0].seq
    assert news.others == {"documents", "rollouts"}
    assert [one.detail for one in await clusters.changes()] == ["base version 1 written"]
    await rollouts.put(changed(added[1], stage=1), Note("", "config", "on"))
    news = await clusters.news(news.version)
    assert news.others == {"rollouts"}
    assert [one.detail for one in await clusters.changes()] == ["on", "base version 1 written"]
    assert await documents.add(document(), Note("", "config", "never")) is None
    assert len(await clusters.changes()) == 2


async def test_of_old_rollouts_the_last_are_kept_and_of_versions_all(
    database: Database, documents: DocumentStore, rollouts: RolloutStore
) -> None:
    for version in range(1, 8):
        for name in ("base", "other"):
            opens = changed(rollout(version), document=name, given={"a": Given(1.0, True, True)})
            assert await documents.add(document(version, name), opens=opens) is not None
    await documents.add(document(8, "other"), opens=changed(rollout(8), document="other"))
    newest = await rollouts.after(0)
    mine, theirs = LeaseStore(database, "hub-a"), LeaseStore(database, "hub-b")
    fence = await mine.hold("housekeeping", 30)
    assert fence is not None
    query = sa.select(table.c.document, table.c.version).order_by(table.c.document, table.c.version)
    for _ in range(2):
        await rollouts.tidy(3, fence)
        kept = await database.read(lambda connection: [tuple(row) for row in connection.execute(query)])
        assert kept == [*(("base", one) for one in (4, 5, 6, 7)), *(("other", one) for one in (5, 6, 7, 8))]
    assert await rollouts.after(0) == newest
    assert len(await documents.after(0)) == 15
    await mine.release(fence)
    assert await theirs.hold("housekeeping", 30) is not None
    with pytest.raises(LeaseLost):
        await rollouts.tidy(0, fence)
