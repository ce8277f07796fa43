"""Does the score say how the federation is, and name what every missing point is for?"""

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.known_clusters import record, sighting
from hansa import bootstrap
from hansa.federation import Hub, Note, health, syncing
from hansa.federation.health import Seen, judge
from hansa.federation.recent import Recent
from hansa.messages.inventory import Change
from hansa.messages.members import Applied
from hansa.settings import Settings


def test_nothing_wrong_is_a_hundred() -> None:
    assert judge(Seen()) == (100.0, ())
    assert judge(Seen(clusters=40, cpu=1000, links=10, age=0.4)) == (100.0, ())


def test_a_lost_cluster_costs_its_share() -> None:
    score, (reason,) = judge(Seen(clusters=4, cpu=1000, unreachable=["riga"], unreachable_cpu=100))
    assert (score, reason.points) == (75.0, 25.0)
    assert reason.reason == "1 of 4 clusters is unreachable, 10% of the cpu: riga"
    score, _ = judge(Seen(clusters=4, cpu=1000, unreachable=["riga"], unreachable_cpu=600))
    assert score == 40.0
    assert judge(Seen(clusters=1, unreachable=["riga"]))[0] == 0.0


def test_what_is_wrong_anywhere_is_no_hundred() -> None:
    many = [f"c{number}" for number in range(7)]
    score, (reason,) = judge(Seen(clusters=5000, degraded=["c1"]))
    assert (score, reason.points) == (99.0, 1.0)
    score, reasons = judge(
        Seen(clusters=10, degraded=many, links=2, links_down=[("a", "b")], behind=["a"], expiring=["b"], age=90.0)
    )
    assert [one.points for one in reasons] == [28.0, 25.0, 10.0, 1.5, 1.5]
    assert score == 34.0
    assert reasons[0].reason == "7 of 10 clusters are degraded: c0, c1, c2, c3, c4 and 2 more"
    assert reasons[1].reason.startswith("the hub's database is out of reach for 90 s")
    assert reasons[2].reason == "1 of 2 links is down: a to b"


names = st.lists(st.sampled_from(list("abcdefgh")), unique=True)


@given(names, names, names, names, st.integers(8, 20), st.floats(0, 100), st.booleans())
def test_it_stays_within_and_adds_up(
    lost: list[str], weak: list[str], late: list[str], old: list[str], count: int, age: float, more: bool
) -> None:
    weak = [name for name in weak if name not in lost]
    seen = Seen(clusters=count, cpu=100, unreachable=lost, degraded=weak, behind=late, expiring=old, age=age)
    score, reasons = judge(seen)
    assert 0.0 <= score <= 100.0
    assert score == pytest.approx(max(0.0, 100.0 - sum(one.points for one in reasons)), abs=0.06)
    assert [one.points for one in reasons] == sorted((one.points for one in reasons), reverse=True)
    assert (score == 100.0) == (not reasons)
    if more and weak:  # what gets worse never scores better
        assert judge(replace(seen, unreachable=[*lost, weak[0]], degraded=weak[1:]))[0] <= score


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    given_settings = Settings.model_validate({"data": tmp_path, "role": "hub", "admin": {"password": "x"}})
    async with bootstrap.opened_hub(given_settings) as app:
        yield app.hub


async def test_the_status_of_a_real_hub(hub: Hub) -> None:
    now = hub.clock.now()
    until = now + 23 * 3600
    for name, state in (("lubeck", "ready"), ("visby", "degraded"), ("riga", "unreachable"), ("new", "pending")):
        found = record(name, state=state, since=now - len(name), certificate_until=until, reason=f"{name} is {state}")
        assert await hub.clusters.put(replace(found, version=0), Note(name, "joined", "it joined")) is not None
    await syncing.learn(hub)
    for name in ("lubeck", "visby", "riga"):
        hub.registry.hear(sighting(name, 1, totals={"cpu": 1000}, links=[]))
    fence = await hub.leases.hold("detector", 30)
    assert fence is not None
    hub.holders = await hub.leases.holders()
    found_status = health.status(hub)
    assert found_status.by_state == {"degraded": 1, "pending": 1, "ready": 1, "unreachable": 1}
    assert [(one.cluster, one.state, one.reason) for one in found_status.degraded] == [
        ("visby", "degraded", "visby is degraded"),
        ("riga", "unreachable", "riga is unreachable"),
    ]
    assert found_status.score == pytest.approx(100 - 100 / 3 - 40 / 3, abs=0.2)
    assert found_status.total.cpu == 3000
    assert [one.cluster for one in found_status.recent if one.cluster] == ["lubeck", "visby", "riga", "new"]
    assert found_status.work == {"detector": hub.id}
    assert found_status.hubs == (hub.id,)


async def test_certificates_that_are_not_renewed_and_clusters_that_lag(hub: Hub) -> None:
    now = hub.clock.now()
    hub.registry.put(record("lubeck", certificate_until=now + 3600.0, desired=7))
    hub.registry.put(record("visby", certificate_until=now + 86_000.0, desired=7))
    hub.registry.put(record("oscar", kind="oscar", desired=7))
    hub.registry.hear(sighting("visby", 1, applied=Applied(generation=7)))
    assert health.look(hub).expiring == ["lubeck"]
    assert health.look(hub).behind == []  # not for long yet
    hub.clock.learn(now + 40, time.monotonic())
    assert health.look(hub).behind == ["lubeck"]
    hub.registry.hear(sighting("lubeck", 1, applied=Applied(generation=6)))
    assert health.look(hub).behind == ["lubeck"]
    hub.registry.hear(sighting("lubeck", 2, applied=Applied(generation=8)))
    assert health.look(hub).behind == []


async def test_a_database_out_of_reach_shows(hub: Hub) -> None:
    assert health.status(hub).score == 100.0
    hub.clock.learn(hub.clock.now() + 60, time.monotonic())
    status = health.status(hub)
    assert status.score == 75.0
    assert status.age == pytest.approx(60, abs=5)


async def test_what_happened_before_the_start_is_known(tmp_path: Path) -> None:
    given_settings = Settings.model_validate({"data": tmp_path, "role": "hub", "admin": {"password": "x"}})
    async with bootstrap.opened_hub(given_settings) as app:
        await app.hub.clusters.note(Note("", "policy", "one"), Note("", "policy", "two"))
    async with bootstrap.opened_hub(given_settings) as app:
        assert [one.detail for one in app.hub.recent.newest(2)] == ["one", "two"]
        await app.hub.clusters.note(Note("", "policy", "three"))
        await syncing.learn(app.hub)
        assert [one.detail for one in health.status(app.hub).recent][-3:] == ["one", "two", "three"]


def test_news_that_comes_twice_is_told_once() -> None:
    recent, told = Recent(), list[int]()
    recent.watch(lambda change: told.append(change.id))
    changes = [Change(id=number, at=1.0, cluster="", kind="k", detail="d") for number in range(1, 5)]
    recent.learn(changes[:3])
    recent.learn(changes[1:])
    assert told == [1, 2, 3, 4]
    assert [one.id for one in recent.newest(2)] == [3, 4]
    assert recent.newest(0) == ()
