"""The hub's actions on a real database: heard, judged, told, acted on; and the same with the database away."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from hansa import bootstrap
from hansa.federation import ClusterRecord, Fence, Hub, acting, desired, errors, heartbeats, judging, syncing
from hansa.identity import Caller
from hansa.kernel.errors import Forbidden, TooLarge
from hansa.messages.clusters import Facts, FactsChange
from hansa.messages.members import Applied, Health, Heartbeat, Report
from hansa.settings import Settings

ADMIN = Caller.admin()
SOMEBODY = Caller(kind="user", uid="ann@test", name="Ann")


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    given = Settings.model_validate({"data": tmp_path, "role": "hub", "admin": {"password": "x"}})
    async with bootstrap.opened_hub(given) as app:
        yield app.hub


async def join(hub: Hub, name: str = "visby") -> ClusterRecord:
    now = hub.clock.now()
    facts = Facts(name=name, endpoint=f"https://{name}.example")
    life = await hub.clusters.lives(name) + 1
    written = await hub.clusters.put(
        ClusterRecord(
            *(name, "hansa", "ready", now, "it joined", life, now, facts),
            endpoint=facts.endpoint,
            serials=(f"{name}-{life}",),
        )
    )
    assert written is not None
    await syncing.learn(hub)
    return written


def beat(hub: Hub, name: str = "visby", number: int = 1, **more: object) -> Heartbeat:
    known = hub.registry.get(name)
    assert known is not None
    return Heartbeat(incarnation=known.record.incarnation, number=number, **more)  # type: ignore[arg-type]


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


async def fence(hub: Hub) -> Fence:
    held = await hub.leases.hold("detector", 30)
    assert held is not None
    return held


def state(hub: Hub) -> str:
    return acting.get(hub, "visby").record.state


async def judge(hub: Hub, *, silent: float = 0.0) -> None:
    """As if so many seconds had passed in silence."""
    hub.clock.learn(hub.clock.now() + silent, time.monotonic())
    await judging.all_clusters(hub, await fence(hub))


async def test_only_the_certificate_in_use_speaks_for_a_cluster(hub: Hub) -> None:
    await join(hub)
    assert heartbeats.member(hub, "visby", "visby-1").id == "visby"
    with pytest.raises(errors.NotAMember):
        heartbeats.member(hub, "visby", "stolen")
    with pytest.raises(errors.NotAMember):
        heartbeats.member(hub, "riga", "visby-1")


async def test_one_that_was_removed_is_told_how_to_return(hub: Hub) -> None:
    first = await join(hub)
    known = acting.get(hub, "visby")
    with pytest.raises(errors.WrongState, match="ready"):
        await acting.remove(hub, ADMIN, "visby", force=False)
    await acting.remove(hub, ADMIN, "visby", force=True)
    with pytest.raises(errors.WasRemoved) as told:
        heartbeats.member(hub, "visby", "visby-1")
    assert "hansa cluster join" in told.value.hint
    again = await join(hub)
    assert again.incarnation == first.incarnation + 1
    with pytest.raises(errors.NotAMember):
        heartbeats.member(hub, "visby", "visby-1")
    late = Heartbeat(incarnation=first.incarnation, number=7)
    with pytest.raises(errors.NotAMember, match="former life"):
        heartbeats.hear(hub, acting.get(hub, "visby"), late)
    assert known.record.incarnation == first.incarnation


async def test_who_missed_something_asks_for_everything(hub: Hub) -> None:
    await join(hub)
    known = acting.get(hub, "visby")
    assert heartbeats.hear(hub, known, beat(hub, number=1)).whole  # nothing is known of it
    some = {"health": raw(Health())}
    assert heartbeats.hear(hub, known, beat(hub, number=1, sections=some)).whole  # still: the answer may get lost
    assert heartbeats.hear(hub, known, beat(hub, number=1, sections=some)).whole
    sections = {"totals": raw({"cpu": 4000}), "future": raw([1, 2])}
    assert not heartbeats.hear(hub, known, beat(hub, number=2, whole=True, sections=sections)).whole
    assert not heartbeats.hear(hub, known, beat(hub, number=3, answered=2)).whole
    assert heartbeats.hear(hub, known, beat(hub, number=9, answered=8)).whole  # another hub heard 4 to 8
    assert known.totals.cpu == 4000
    assert known.sections["future"][1] == b"[1,2]"


async def test_what_is_too_large_is_refused(hub: Hub) -> None:
    await join(hub)
    known = acting.get(hub, "visby")
    many = {f"s{number}": raw(1) for number in range(40)}
    large = {"nodes": msgspec.Raw(b'"' + b"x" * 5 * 2**20 + b'"')}
    for sections in (many, large):
        with pytest.raises(TooLarge):
            heartbeats.hear(hub, known, beat(hub, sections=sections))


async def test_reports_are_acknowledged_once_they_are_written_down(hub: Hub) -> None:
    await join(hub)
    known = acting.get(hub, "visby")
    reports = (Report(number=1, at=5.0, kind="drained", detail="soon"), Report(number=2, at=6.0, kind="drained"))
    assert heartbeats.hear(hub, known, beat(hub, reports=reports)).received == 0
    await syncing.once(hub)
    assert heartbeats.hear(hub, known, beat(hub, number=2, reports=reports)).received == 2
    await syncing.once(hub)
    told = [(one.at, one.detail) for one in await hub.clusters.changes() if one.kind == "drained"]
    assert told == [(6.0, ""), (5.0, "soon")]


async def test_silence_is_noticed_and_so_is_the_return(hub: Hub) -> None:
    await join(hub)
    known = acting.get(hub, "visby")
    heartbeats.hear(hub, known, beat(hub))
    await judge(hub)
    assert acting.get(hub, "visby").record.state == "ready"
    await judge(hub, silent=11)
    assert (state(hub), known.record.reason[:12]) == ("degraded", "no heartbeat")
    await judge(hub, silent=5)
    assert state(hub) == "unreachable"
    version = known.record.version
    await judge(hub, silent=60)
    assert known.record.version == version  # going on being silent is no news
    heartbeats.hear(hub, known, beat(hub, number=2))
    await judge(hub)
    assert state(hub) == "ready"
    kinds = [one.detail.split(":")[0] for one in await hub.clusters.changes(cluster="visby")]
    assert kinds == ["unreachable -> ready", "degraded -> unreachable", "ready -> degraded"]


async def test_what_a_cluster_says_of_itself_degrades_it(hub: Hub) -> None:
    await join(hub)
    known = acting.get(hub, "visby")
    ill = {"health": raw(Health(missing=("object store: gone",)))}
    heartbeats.hear(hub, known, beat(hub, sections=ill))
    await judge(hub)
    assert (known.record.state, known.record.reason) == ("degraded", "object store: gone")
    well = {"health": raw(Health()), "applied": raw(Applied(error="jobs.cpu: too much"))}
    heartbeats.hear(hub, known, beat(hub, number=2, sections=well))
    await judge(hub)
    assert "jobs.cpu: too much" in known.record.reason


async def test_a_watch_ends_when_there_is_something_to_know(hub: Hub) -> None:
    await join(hub)
    have = desired.of(hub, "visby")
    assert await desired.newer(hub, "visby", have.generation, 0.01) is None
    waiting = asyncio.create_task(desired.newer(hub, "visby", have.generation, 20))
    await asyncio.sleep(0)
    await acting.drain(hub, ADMIN, "visby")
    await syncing.learn(hub)
    told = await waiting
    assert told is not None
    assert (told.cordoned, told.drain, told.leave, told.whole) == (True, True, False, False)
    assert told.generation > have.generation
    assert await desired.newer(hub, "visby", told.generation, 0.01) is None


async def test_nothing_is_told_before_all_that_others_wrote_earlier(hub: Hub) -> None:
    """Who was told the newer would not ask for the older any more."""
    await join(hub)
    have = desired.of(hub, "visby").generation
    riga = ClusterRecord("riga", "hansa", "ready", 1.0, "it joined", 1, 1.0, Facts(endpoint="https://riga.example"))
    assert await hub.clusters.put(riga) is not None  # by another hub
    waiting = asyncio.create_task(desired.newer(hub, "visby", have, 20))
    await asyncio.sleep(0)
    await acting.cordon(hub, ADMIN, "visby", on=True)
    assert desired.generation(hub, "visby") == have
    await syncing.learn(hub)
    told = await waiting
    assert told is not None
    assert told.cordoned
    assert [one.id for one in told.neighbours] == ["riga"]


async def test_neighbours_are_told_as_they_come_and_go(hub: Hub) -> None:
    await join(hub)
    have = desired.of(hub, "visby").generation
    await join(hub, "riga")
    assert hub.directory.announce(hub.clock.now(), hub.registry.version)
    told = await desired.newer(hub, "visby", have, 5)
    assert told is not None
    assert [(one.id, one.endpoint) for one in told.neighbours] == [("riga", "https://riga.example")]
    await acting.remove(hub, ADMIN, "riga", force=True)
    await syncing.learn(hub)
    assert hub.directory.announce(hub.clock.now() + 10, hub.registry.version)
    gone = await desired.newer(hub, "visby", told.generation, 5)
    assert gone is not None
    assert (gone.neighbours, gone.gone, gone.whole) == ((), ("riga",), False)


async def test_people_s_actions(hub: Hub) -> None:
    await join(hub)
    with pytest.raises(Forbidden):
        await acting.cordon(hub, SOMEBODY, "visby", on=True)
    with pytest.raises(errors.NoSuchCluster):
        await acting.cordon(hub, ADMIN, "atlantis", on=True)
    assert (await acting.cordon(hub, ADMIN, "visby", on=True)).record.cordoned
    version = acting.get(hub, "visby").record.version
    assert (await acting.cordon(hub, ADMIN, "visby", on=True)).record.version == version  # it is so already
    assert (await acting.drain(hub, ADMIN, "visby")).record.wanted == "drain"
    opened = (await acting.cordon(hub, ADMIN, "visby", on=False)).record
    assert (opened.cordoned, opened.wanted) == (False, "member")
    assert (await acting.let_go(hub, ADMIN, "visby")).record.wanted == "leave"
    with pytest.raises(errors.WrongState, match="leaving"):
        await acting.cordon(hub, ADMIN, "visby", on=False)
    described = await acting.describe(hub, ADMIN, "visby", FactsChange(region="gotland", metadata={"a": "b"}))
    assert (described.facts.region, described.facts.metadata) == ("gotland", {"a": "b"})
    assert described.facts.name == "visby"


async def test_an_action_decides_anew_when_somebody_was_faster(hub: Hub) -> None:
    record = await join(hub)
    elsewhere = await hub.clusters.put(replace(record, reason="changed by another hub"))
    assert elsewhere is not None
    changed = await acting.cordon(hub, ADMIN, "visby", on=True)
    assert (changed.record.cordoned, changed.record.reason) == (True, "changed by another hub")


async def test_without_the_database_memory_answers_and_nothing_heard_is_lost(hub: Hub) -> None:
    await join(hub)
    known = acting.get(hub, "visby")
    report = (Report(number=1, at=5.0, kind="drain", detail="while it was away"),)
    store = hub.clusters
    await store._database.close()  # type: ignore[attr-defined]
    heard = heartbeats.hear(hub, known, beat(hub, whole=True, sections={"totals": raw({"cpu": 9})}, reports=report))
    assert (heard.number, heard.received) == (1, 0)
    with pytest.raises(Exception, match="closed"):
        await syncing.once(hub)
    assert known.totals.cpu == 9
    (kept,) = hub.registry.take_unsaved()
    assert (kept.sections["totals"][1], kept.reports[0][1].detail) == (b'{"cpu":9}', "while it was away")


async def test_a_cluster_says_something_else_of_itself(hub: Hub) -> None:
    """After an upgrade, say, or with other settings; what cannot be registered changes nothing."""
    await join(hub)
    known = acting.get(hub, "visby")
    other = Facts(name="Visby", endpoint="https://visby.example", region="eu")
    heartbeats.hear(hub, known, beat(hub, sections={"facts": raw(other)}))
    await judge(hub)
    assert known.facts == other
    (told,) = await hub.clusters.changes(cluster="visby")
    assert (told.kind, told.detail) == ("facts", "it says something else of itself: name, region")
    for number, odd in enumerate((Facts(region="x" * 101), ["no facts"]), 2):
        heartbeats.hear(hub, known, beat(hub, number=number, sections={"facts": raw(odd)}))
        await judge(hub)
    assert known.facts == other


async def test_one_that_was_found_well_is_judged_again_as_soon_as_anything_changes(hub: Hub) -> None:
    await join(hub)
    known = acting.get(hub, "visby")

    async def found(*, number: int = 0, silent: float = 0.0, **said: object) -> str:
        if number:
            heartbeats.hear(
                hub, known, beat(hub, number=number, sections={name: raw(one) for name, one in said.items()})
            )
        for _ in range(2):  # the second time nothing is new
            await judge(hub, silent=silent)
            silent = 0.0
        return known.record.state

    assert await found(number=1) == "ready"
    assert known.settled
    assert await found(silent=16) == "unreachable"
    assert await found(number=2) == "ready"
    assert await found(number=3, health=Health(missing=("database: gone",))) == "degraded"
    assert await found(number=4, health=Health()) == "ready"
    assert await found(number=5, applied=Applied(error="jobs.cpu: no number")) == "degraded"
    await acting.drain(hub, Caller.admin(), "visby")
    assert await found(number=6, applied=Applied()) == "draining"
