"""Does a chart show what was: every minute once, coarser the longer ago, nothing twice and nothing invented?"""

import itertools
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from federation.known_clusters import record, sighting
from hansa import bootstrap
from hansa.bootstrap import HubApp
from hansa.federation import Fence, Hub, errors, history
from hansa.federation.history import Asked, BadTime
from hansa.federation.samples import LEVELS
from hansa.messages.inventory import Sample
from hansa.messages.members import Totals
from hansa.settings import Settings
from hansa.store.hub.tables import samples as table
from real.postgres import Database

BEGIN = 1_800_000_000.0 - 1_800_000_000 % 3600  # an hour begins


def settings_for(folder: Path, url: str = "") -> Settings:
    told = {"data": folder, "role": "hub", "admin": {"password": "x"}, "database": {"url": url}}
    return Settings.model_validate(told)


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = "" if request.param == "sqlite" else str(request.getfixturevalue("postgres_database").url)
    return settings_for(tmp_path, url)


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[HubApp]:
    async with bootstrap.opened_hub(settings) as opened:
        yield opened


@pytest.fixture
def hub(app: HubApp) -> Hub:
    return app.hub


def at(hub: Hub, moment: float) -> None:
    """Time jumps: what takes hours must not."""
    hub.clock.learn(moment, time.monotonic())


async def fence(hub: Hub) -> Fence:
    held = await hub.leases.hold("history", 60)
    assert held is not None
    return held


_numbers: dict[str, int] = {}


def hear(hub: Hub, cluster: str, **totals: int) -> None:
    if hub.registry.get(cluster) is None:
        hub.registry.put(record(cluster, region="eu" if cluster != "riga" else "us"))
    _numbers[cluster] = number = _numbers.get(cluster, 0) + 1
    hub.registry.hear(sighting(cluster, number, totals=totals))


async def minutes(hub: Hub, count: int, begin: float = BEGIN, **more: int) -> None:
    """So many, each with a use of its own: 0, 1, 2 …"""
    held = await fence(hub)
    for minute in range(count):
        at(hub, begin + 60 * minute + 5)
        hear(hub, "lubeck", cpu=1000, cpu_used=minute, **more)
        assert await history.take(hub, held)


async def asked(hub: Hub, start: float, end: float, points: int = 1000, **what: str) -> tuple[Sample, ...]:
    return (await history.of(hub, Asked(start, end, points, **what))).samples


async def test_every_minute_once(hub: Hub) -> None:
    hear(hub, "riga", cpu=500, cpu_used=7)
    await minutes(hub, 3)
    assert not await history.take(hub, await fence(hub))
    found = await asked(hub, BEGIN, BEGIN + 600, cluster="lubeck")
    assert [(one.at - BEGIN, one.seconds, one.totals.cpu_used) for one in found] == [
        (0, 60, 0),
        (60, 60, 1),
        (120, 60, 2),
    ]
    whole = await asked(hub, BEGIN, BEGIN + 600)
    assert [(one.totals.cpu, one.totals.cpu_used) for one in whole] == [(1500, 7), (1500, 8), (1500, 9)]
    region = await history.of(hub, Asked(BEGIN, BEGIN + 600, 100, region="us"))
    assert (region.region, [one.totals.cpu for one in region.samples]) == ("us", [500, 500, 500])
    assert await asked(hub, BEGIN, BEGIN + 600, region="nowhere") == ()
    assert [one.at - BEGIN for one in await asked(hub, BEGIN + 60, BEGIN + 120)] == [60]


async def test_a_cluster_nobody_hears_has_a_gap(hub: Hub) -> None:
    await minutes(hub, 1)
    hub.registry.put(record("lubeck", state="unreachable", version=2))
    at(hub, BEGIN + 65)
    await history.take(hub, await fence(hub))
    assert len(await asked(hub, BEGIN, BEGIN + 600, cluster="lubeck")) == 1
    assert len(await asked(hub, BEGIN, BEGIN + 600)) == 2


async def test_two_hubs_never_take_the_same_minute(postgres_database: Database, tmp_path: Path) -> None:
    settings = settings_for(tmp_path, postgres_database.url)
    async with AsyncExitStack() as parts:
        one, two = [(await parts.enter_async_context(bootstrap.opened_hub(settings))).hub for _ in range(2)]
        for minute in range(4):
            taken = []
            for hub in (one, two):
                at(hub, BEGIN + 60 * minute + 5)
                hear(hub, "lubeck", cpu=1000 + minute)
                held = await fence(hub)
                taken.append(await history.take(hub, held))
                await hub.leases.release(held)
            assert taken == [True, False]
        for hub in (one, two):
            assert [found.totals.cpu for found in await asked(hub, BEGIN, BEGIN + 600)] == [1000, 1001, 1002, 1003]


async def test_longer_ago_is_coarser_and_nothing_is_counted_twice(app: HubApp, hub: Hub) -> None:
    await minutes(hub, 125)
    now = BEGIN + 125 * 60
    near = await asked(hub, now - 1800, now)
    assert {one.seconds for one in near} == {60}
    far = await asked(hub, now - 86_400, now, cluster="lubeck")
    assert [one.seconds for one in far] == [600] * 12 + [60] * 5
    assert [one.at for one in far] == sorted(one.at for one in far)
    assert all(one.at + one.seconds <= after.at for one, after in itertools.pairwise(far))
    assert [one.totals.cpu_used for one in far[:3]] == [4, 14, 24]  # of 0 to 9 the mean is 4.5: even wins
    assert {one.totals.cpu for one in far} == {1000}
    days = await asked(hub, now - 30 * 86_400, now)
    assert [one.seconds for one in days] == [3600, 3600, 60, 60, 60, 60, 60]
    kept = await app.database.read(lambda c: c.execute(sa.select(sa.func.count()).where(table.c.level == 60)).scalar())
    assert kept is not None
    assert kept <= 2 * (LEVELS[0].slots + 1)  # a shard and the sums


async def test_after_a_long_pause_it_goes_on(hub: Hub) -> None:
    await minutes(hub, 12)
    later = BEGIN + 5 * 3600
    await minutes(hub, 20, later)
    found = await asked(hub, BEGIN, later + 1200)
    assert [(one.at - BEGIN, one.seconds) for one in found] == [
        (0, 600),
        (18_000, 600),
        *((18_600 + 60 * k, 60) for k in range(10)),
    ]


async def test_points_are_as_many_as_a_chart_wants(hub: Hub) -> None:
    await minutes(hub, 30)
    found = await asked(hub, BEGIN, BEGIN + 1800, points=7)
    assert len(found) == 7
    assert sum(one.seconds for one in found) == 1800
    assert found[0].totals == Totals(cpu=1000, cpu_used=2)


async def test_what_cannot_be_asked(hub: Hub) -> None:
    with pytest.raises(errors.NoSuchCluster):
        await asked(hub, 0, 1, cluster="nobody")
    with pytest.raises(BadTime):
        await asked(hub, 2, 1)
    assert await asked(hub, 0, 1) == ()


@given(st.lists(st.integers(0, 1000), max_size=60, unique=True), st.integers(1, 50), st.integers(1, 2000))
def test_reduced_to_any_number_of_points(slots: list[int], points: int, span: int) -> None:
    given_samples = [Sample(at=60.0 * slot, seconds=60.0, totals=Totals(cpu_used=slot)) for slot in sorted(slots)]
    found = history.reduced(given_samples, Asked(0.0, 60.0 * span, points))
    assert len(found) <= points or found == tuple(given_samples)
    assert len(found) <= max(points, 0) or len(slots) <= points
    assert sum(one.seconds for one in found) == 60.0 * len(slots)
    assert [one.at for one in found] == sorted(one.at for one in found)
