"""Two hubs on one PostgreSQL, killed and stopped again and again under load: the promises hold, and history shows it.

`HANSA_TEST_HUB_SOAK=120` makes it last two minutes.
"""

import asyncio
import contextlib
import itertools
import os
import random
import time
from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg
import pytest

from real.hub import ADMIN, Hub, StartHub
from real.postgres import Database
from real.simulated_manager import SimulatedManager

pytestmark = pytest.mark.deep

SOAK = float(os.environ.get("HANSA_TEST_HUB_SOAK", "16"))
SEED = int(os.environ.get("HANSA_TEST_HUB_SEED", "7"))
CLUSTERS = ("bergen", "gdansk", "novgorod", "reval")
LOST = "atlantis"  # reports for a while and then never again
LEASE = 1.5
SETTINGS = {"hub.heartbeat_every": 2.0, "hub.lease_seconds": LEASE, "hub.sync_every": 0.1}


@dataclass(slots=True)
class Writer:
    """Writes growing numbers into one cluster's metadata, to whichever hub, and remembers what it was told."""

    cluster: str
    acknowledged: int = 0
    tried: int = 0
    tokens: list[str] = field(default_factory=list)
    refused: int = 0

    async def work(self, hubs: list[Hub], until: float, chance: random.Random) -> None:
        auth = httpx.BasicAuth(ADMIN, hubs[0].password)
        async with httpx.AsyncClient(auth=auth, timeout=2.0, trust_env=False) as http:
            while time.monotonic() < until:
                hub = chance.choice(hubs)
                self.tried += 1
                with contextlib.suppress(httpx.TransportError):
                    body = {"metadata": {"n": str(self.tried)}}
                    answer = await http.patch(f"{hub.url}/v1/clusters/{self.cluster}", json=body)
                    if answer.status_code == 200:
                        assert answer.json()["facts"]["metadata"]["n"] == str(self.tried)
                        self.acknowledged = self.tried
                    else:
                        assert answer.status_code in (409, 503), answer.text
                        self.refused += 1
                with contextlib.suppress(httpx.TransportError):
                    answer = await http.post(f"{hub.url}/v1/cluster-tokens", json={"minutes": 30})
                    if answer.status_code == 201:
                        self.tokens.append(answer.json()["id"])
                await asyncio.sleep(chance.uniform(0, 0.05))


async def report(manager: SimulatedManager, over: asyncio.Event, chance: random.Random) -> None:
    while not over.is_set():
        await manager.beat(hub=chance.randrange(2), totals={"cpu": chance.randrange(1000)})
        await asyncio.sleep(0.5)


async def disturb(hubs: list[Hub], until: float, chance: random.Random) -> None:
    """Each hub in turn is stopped and killed. The first stops are longer than a lease, whoever holds it."""
    for turn in itertools.count():
        if turn >= 4 and time.monotonic() >= until:
            return
        hub = hubs[turn % 2]
        if turn % 4 < 2:
            hub.pause()
            await asyncio.sleep(3 * LEASE if turn < 2 else chance.uniform(LEASE / 3, 2.5 * LEASE))
            hub.go_on()
        else:
            hub.kill()
            await asyncio.sleep(chance.uniform(0, 2))
            await asyncio.to_thread(hub.start)
        await asyncio.sleep(chance.uniform(0.5, 1.5))


async def test_killed_and_stopped_under_load(start_hub: StartHub, postgres_database: Database) -> None:
    chance = random.Random(SEED)
    one = start_hub(SETTINGS, database=postgres_database.url)
    shared = {**SETTINGS, "admin.password": one.password}
    two = start_hub(shared, database=postgres_database.url, key_file=one.key_file)
    two.password = one.password
    hubs = [one, two]
    async with contextlib.AsyncExitStack() as stack:
        managers = {}
        for name in (*CLUSTERS, LOST):
            manager = SimulatedManager(name, [hub.members_url for hub in hubs], timeout=1.0)
            managers[name] = await stack.enter_async_context(manager)
            await manager.join(one.token())
        until = time.monotonic() + SOAK
        writers = [Writer(name) for name in CLUSTERS]
        async with asyncio.TaskGroup() as tasks:
            over, lost = asyncio.Event(), asyncio.Event()
            for name in CLUSTERS:
                tasks.create_task(report(managers[name], over, chance))
            tasks.create_task(report(managers[LOST], lost, chance))
            asyncio.get_running_loop().call_later(3, lost.set)
            writing = [tasks.create_task(writer.work(hubs, until, chance)) for writer in writers]
            await disturb(hubs, until, chance)
            await asyncio.gather(*writing)
            await settled(hubs)  # the living go on reporting, so that nobody is silent while we look
            over.set()
    check_writes(hubs, writers)
    check_history(postgres_database)


async def settled(hubs: list[Hub]) -> None:
    """Both hubs say the same of every cluster, and the lost one is given up."""
    until = time.monotonic() + 30
    while True:
        with contextlib.suppress(httpx.TransportError, KeyError):
            said = [{name: await asyncio.to_thread(hub.cluster, name) for name in (*CLUSTERS, LOST)} for hub in hubs]
            states = [{name: one["state"] for name, one in each.items()} for each in said]
            if states[0] == states[1] == {**dict.fromkeys(CLUSTERS, "ready"), LOST: "unreachable"}:
                return
        assert time.monotonic() < until, "the hubs did not come to agree"
        await asyncio.sleep(0.2)


def check_writes(hubs: list[Hub], writers: list[Writer]) -> None:
    """What was acknowledged is there, at both hubs, and nothing that nobody wrote."""
    for hub in hubs:
        listed = {one["id"] for one in hub.admin.get("/v1/cluster-tokens").json()}
        for writer in writers:
            assert writer.acknowledged > 0
            value = int(hub.cluster(writer.cluster)["facts"]["metadata"]["n"])
            assert writer.acknowledged <= value <= writer.tried, writer
            assert set(writer.tokens) <= listed


def check_history(database: Database) -> None:
    with psycopg.connect(database.conninfo) as link:
        changes = _rows(link, "select id, cluster, detail from hub_changes where kind = 'state' order by id")
        turns = _rows(link, "select work, slot, epoch from hub_turns order by work, slot")
        leases = _rows(link, "select work, epoch from hub_leases")
    state: dict[str, str] = {}
    for _, cluster, detail in changes:
        before, _, after = str(detail).partition(":")[0].partition(" -> ")
        assert before == state.get(cluster, "ready"), f"{cluster}: {detail} after {state.get(cluster)}"  # done twice
        state[cluster] = after
    assert state.get(LOST) == "unreachable"
    assert not [one for one in changes if one[1] != LOST and "-> unreachable" in str(one[2])], "a false alarm"
    assert max(epoch for _, epoch in leases) > 1  # work was taken over at all
    last: dict[str, int] = {}
    for work, _, epoch in turns:  # who was overtaken took no turn any more
        assert epoch >= last.get(work, 0)
        last[work] = epoch


def _rows(link: "psycopg.Connection[Any]", query: str) -> list[tuple[Any, ...]]:
    return link.execute(query.encode()).fetchall()
