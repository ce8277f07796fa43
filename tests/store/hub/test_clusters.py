"""The registry's rows: versions in the order of commits, conditional writes, nothing of the removed comes back."""

import asyncio
from dataclasses import replace

import pytest

from hansa.federation import NOW, ClusterRecord, Note, Sighting
from hansa.federation.errors import LeaseLost
from hansa.messages.clusters import Cost, Facts
from hansa.store import Database
from hansa.store.hub import ClusterStore, LeaseStore


def record(name: str = "visby", **changes: object) -> ClusterRecord:
    told = Facts(name=name, endpoint=f"http://{name}.example", region="eu", metadata={"tier": "a"})
    first = ClusterRecord(name, "hansa", "ready", 1.0, "it joined", 1, 1.0, told, serials=("ab", "cd"))
    return replace(first, **changes)  # type: ignore[arg-type]


@pytest.fixture
def store(database: Database) -> ClusterStore:
    return ClusterStore(database, "hub-a")


@pytest.fixture
def other(database: Database) -> ClusterStore:
    return ClusterStore(database, "hub-b")


async def test_what_was_put_is_news_to_all(store: ClusterStore, other: ClusterStore) -> None:
    before = await other.news(0)
    written = await store.put(
        record(overrides={"region": "no", "cost": Cost(cpu_hour=2.0)}, desired=NOW), Note("visby", "joined", "hello")
    )
    assert written is not None
    assert written.desired == written.version > before.version
    news = await other.news(before.version)
    assert list(news.clusters) == [written]
    assert news.version == written.version
    assert (await other.news(news.version)).clusters == ()
    listed = await store.changes()
    assert [(one.cluster, one.kind, one.detail) for one in listed] == [("visby", "joined", "hello")]


async def test_who_decided_on_an_old_state_writes_nothing(store: ClusterStore) -> None:
    first = await store.put(record())
    assert first is not None
    assert await store.put(record()) is None  # there is one already
    second = await store.put(replace(first, cordoned=True))
    assert second is not None
    assert await store.put(replace(first, state="draining"), Note("visby", "state", "never told")) is None
    (kept,) = (await store.news(0)).clusters
    assert kept == second
    assert await store.changes() == []


async def test_many_at_once_leave_out_those_that_changed(store: ClusterStore) -> None:
    put = [await store.put(record(name)) for name in ("lubeck", "riga", "visby")]
    old = [one for one in put if one is not None]
    changed = await store.put(replace(old[1], cordoned=True))
    assert changed is not None
    notes = [Note(one.id, "state", "x") for one in old]
    written = await store.put_all([replace(one, state="degraded") for one in old], notes)
    assert [one.id for one in written] == ["lubeck", "visby"]
    assert {one.cluster for one in await store.changes()} == {"lubeck", "visby"}


async def test_one_of_many_writers_wins(store: ClusterStore) -> None:
    first = await store.put(record())
    assert first is not None
    attempts = [store.put(replace(first, reason=str(number))) for number in range(8)]
    won = [one for one in await asyncio.gather(*attempts) if one is not None]
    assert len(won) == 1


async def test_sightings_newer_numbers_win_by_section(store: ClusterStore, other: ClusterStore) -> None:
    await store.put(record())
    await store.sighted([Sighting("visby", 1, 10.0, 5, {"totals": (5, b"new"), "nodes": (4, b"n4")})])
    await other.sighted([Sighting("visby", 1, 11.0, 6, {"totals": (3, b"old"), "health": (6, b"h")})])
    (seen,) = (await ClusterStore(store._database, "hub-c").news(0)).sightings
    assert (seen.seen, seen.number) == (11.0, 6)
    assert seen.sections == {"totals": (5, b"new"), "nodes": (4, b"n4"), "health": (6, b"h")}


async def test_one_s_own_sightings_are_no_news(store: ClusterStore, other: ClusterStore) -> None:
    await store.put(record())
    at = (await store.news(0)).version
    await store.sighted([Sighting("visby", 1, 10.0, 5, {"totals": (5, b"x")})])
    assert (await store.news(at)).sightings == []
    assert len((await other.news(at)).sightings) == 1


async def test_what_another_hub_heard_is_news_also_if_we_heard_later(store: ClusterStore, other: ClusterStore) -> None:
    """A section comes once, with the heartbeat in which it changed; the next heartbeat goes to the other hub."""
    await store.put(record())
    before = (await store.news(0)).version
    await other.sighted([Sighting("visby", 1, 10.0, 5, {"totals": (5, b"changed")})])
    await store.sighted([Sighting("visby", 1, 11.0, 6)])
    (seen,) = (await store.news(before)).sightings
    assert seen.sections == {"totals": (5, b"changed")}


async def test_each_report_is_written_down_once(store: ClusterStore, other: ClusterStore) -> None:
    await store.put(record())
    reports = tuple((number, Note("visby", "job", f"report {number}", 3.0)) for number in (1, 2, 3))
    await store.sighted([Sighting("visby", 1, 10.0, 5, reports=reports)])
    await other.sighted([Sighting("visby", 1, 11.0, 6, reports=(*reports[1:], (4, Note("visby", "job", "report 4"))))])
    told = [one.detail for one in await store.changes()]
    assert told == ["report 4", "report 3", "report 2", "report 1"]
    (seen,) = (await ClusterStore(store._database, "hub-c").news(0)).sightings
    assert seen.received == 4


async def test_a_report_is_known_by_what_it_says_whatever_numbers_were_used(store: ClusterStore) -> None:
    """Who has a copy of a member's key may have used up all the numbers."""
    await store.put(record())
    await store.sighted([Sighting("visby", 1, 10.0, 5, reports=((2**62, Note("visby", "job", "forged", 3.0)),))])
    real = (7, Note("visby", "job", "report 7", 4.0))
    for seen in (11.0, 12.0):
        await store.sighted([Sighting("visby", 1, seen, 6, reports=(real,))])
    assert [one.detail for one in await store.changes()] == ["report 7", "forged"]


async def test_the_address_and_the_sender_are_remembered(store: ClusterStore) -> None:
    put = await store.put(record(endpoint="https://visby.example", verify=False, refused="https://evil.example"))
    await store.sighted([Sighting("visby", 1, 10.0, 5, run="abc")])
    news = await ClusterStore(store._database, "hub-c").news(0)
    assert (list(news.clusters), [one.run for one in news.sightings]) == ([put], ["abc"])


async def test_of_a_removed_cluster_nothing_stays_and_nothing_comes_back(store: ClusterStore) -> None:
    first = await store.put(record())
    assert first is not None
    await store.sighted([Sighting("visby", 1, 10.0, 5, {"totals": (5, b"x")})])
    assert await store.remove("visby", Note("visby", "removed", "gone"))
    assert not await store.remove("visby", Note("visby", "removed", "twice"))
    late = Sighting("visby", 1, 12.0, 6, {"totals": (6, b"y")}, reports=((1, Note("visby", "job", "late")),))
    await store.sighted([late])
    assert await store.put(replace(first, cordoned=True)) is None
    news = await ClusterStore(store._database, "hub-c").news(0)
    assert (list(news.clusters), list(news.removed), list(news.sightings)) == ([], ["visby"], [])
    assert [one.detail for one in await store.changes()] == ["gone"]
    assert await store.lives("visby") == 1


async def test_a_removed_one_returns_as_another(store: ClusterStore) -> None:
    await store.put(record())
    await store.remove("visby", Note("visby", "removed", "gone"))
    again = await store.put(record(incarnation=2))
    assert again is not None
    news = await store.news(0)
    assert (list(news.clusters), list(news.removed)) == ([again], [])
    await store.sighted([Sighting("visby", 1, 20.0, 9, {"totals": (9, b"former life")})])
    assert (await ClusterStore(store._database, "hub-c").news(0)).sightings == []


async def test_a_lost_lease_writes_nothing(database: Database, store: ClusterStore) -> None:
    mine, theirs = LeaseStore(database, "hub-a"), LeaseStore(database, "hub-b")
    first = await store.put(record())
    fence = await mine.hold("detector", 30)
    assert first is not None
    assert fence is not None
    first = await store.put(replace(first, state="degraded"), fence=fence)
    assert first is not None
    await mine.release(fence)
    assert await theirs.hold("detector", 30) is not None
    with pytest.raises(LeaseLost):
        await store.put(replace(first, state="unreachable"), fence=fence)
    with pytest.raises(LeaseLost):
        await store.tidy(1, fence)
    (kept,) = (await store.news(0)).clusters
    assert kept.state == "degraded"


async def test_only_the_newest_changes_are_kept(database: Database, store: ClusterStore) -> None:
    fence = await LeaseStore(database, "hub-a").hold("housekeeping", 30)
    assert fence is not None
    for number in range(10):
        await store.note(Note("visby", "state", str(number)))
    await store.tidy(3, fence)
    assert [one.detail for one in await store.changes()] == ["9", "8", "7"]
    second = (await store.changes(most=2))[-1].id
    assert [one.detail for one in await store.changes(before=second)] == ["7"]
    assert await store.changes(cluster="riga") == []


async def test_who_tells_much_pushes_out_nobody_else(database: Database, store: ClusterStore) -> None:
    fence = await LeaseStore(database, "hub-a").hold("housekeeping", 30)
    assert fence is not None
    await store.put(record())
    await store.note(Note("riga", "state", "ready"), Note("visby", "cordon", "by an admin"), Note("", "token", "made"))
    flood = tuple((number, Note("visby", "x", str(number), float(number))) for number in range(500))
    await store.sighted([Sighting("visby", 1, 10.0, 5, reports=flood)])
    await store.tidy(100, fence)
    kept = [(one.cluster, one.kind, one.detail) for one in await store.changes(most=1000)]
    assert kept[-3:] == [("", "token", "made"), ("visby", "cordon", "by an admin"), ("riga", "state", "ready")]
    assert kept[:-3] == [("visby", "x", str(number)) for number in range(499, 402, -1)]
