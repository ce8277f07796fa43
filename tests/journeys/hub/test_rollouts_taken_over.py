"""A rollout while the hubs that drive it are killed one after the other: every step is taken once, and it ends."""

import asyncio
import contextlib
import re
import time
from collections import Counter
from typing import Any

import httpx
import psycopg
import pytest

from hansa.messages.members import Applied
from real.hub import Hub, StartHub
from real.postgres import Database
from real.simulated_manager import SimulatedManager

pytestmark = pytest.mark.deep

CLUSTERS = ("bergen", "danzig", "novgorod", "reval", "riga", "visby")
SETTINGS = {"hub.heartbeat_every": 2.0, "hub.lease_seconds": 1.0, "hub.sync_every": 0.1}
STAGES = {"canary": 1, "percentages": [50, 100], "soak": 1.0, "patience": 60}
PATIENCE = 120.0


async def follow(manager: SimulatedManager, over: asyncio.Event) -> None:
    """As a manager does: watches, takes what it is told, and says so."""
    applied = Applied()
    await manager.beat(applied=applied)
    while not over.is_set():
        with contextlib.suppress(AssertionError):  # no hub answers just now
            found = await manager.desired(applied.generation, wait=0.3)
            if found is not None:
                applied = Applied(generation=found.generation, documents=found.documents)
        await manager.beat(applied=applied)


async def rollout(hubs: list[Hub]) -> dict[str, Any]:
    """As whichever hub answers tells it."""
    for hub in hubs:
        with contextlib.suppress(httpx.TransportError):
            answer = await asyncio.to_thread(hub.admin.get, "/v1/configs/base/rollout")
            if answer.status_code == 200:
                return dict(answer.json())
    return {}


async def write(hub: Hub, body: dict[str, Any]) -> None:
    """Again if the database of a busy machine is slow: the same once more is no other version."""
    end = time.monotonic() + PATIENCE
    while (answer := await asyncio.to_thread(hub.admin.put, "/v1/configs/base", json=body)).status_code != 200:
        assert answer.status_code == 503, answer.text
        assert time.monotonic() < end, answer.text


async def kill_in_turn(hubs: list[Hub]) -> None:
    """Kills each hub in turn, both at least once, until the rollout is done."""
    end, killed = time.monotonic() + PATIENCE, 0
    while killed < 2 or (told := await rollout(hubs)).get("state") != "done":
        assert time.monotonic() < end, f"it does not end: {told}"
        hub = hubs[killed % 2]
        hub.kill()
        killed += 1
        await asyncio.sleep(1.5)  # the other takes over what it did
        await asyncio.to_thread(hub.start)


@pytest.mark.timeout(400)  # hubs start again and again; on a busy machine each takes its time
async def test_every_step_is_taken_once(start_hub: StartHub, postgres_database: Database) -> None:
    one = start_hub(SETTINGS, database=postgres_database.url)
    shared = {**SETTINGS, "admin.password": one.password}
    two = start_hub(shared, database=postgres_database.url, key_file=one.key_file)
    two.password = one.password
    hubs, over = [one, two], asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        managers = []
        for name in CLUSTERS:
            manager = SimulatedManager(name, [hub.members_url for hub in hubs], timeout=2.0)
            managers.append(await stack.enter_async_context(manager))
            await manager.join(one.token())
        async with asyncio.TaskGroup() as tasks:
            for manager in managers:
                tasks.create_task(follow(manager, over))
            try:
                await write(one, {"settings": {"jobs": {"run_limit": 60}}, "stages": STAGES})
                await kill_in_turn(hubs)
            finally:
                over.set()
    for hub in hubs:
        shown = hub.admin.get("/v1/configs/base").json()
        assert {each["cluster"]: each["applied"] for each in shown["clusters"]} == dict.fromkeys(CLUSTERS, 1)
        assert "Traceback" not in hub.log
    check_history(postgres_database)


def check_history(database: Database) -> None:
    with psycopg.connect(database.conninfo) as link:
        rows = link.execute("select detail from hub_changes where kind = 'config' order by id").fetchall()
        epochs = link.execute("select epoch from hub_leases where work = 'rollouts'").fetchone()
    told = [str(row[0]) for row in rows]
    given: Counter[str] = Counter()
    for detail in told:
        if (found := re.search(r"given to (.*)$", detail)) is not None:
            given.update(found[1].split(", "))
    assert given == Counter(CLUSTERS), "each cluster was given it once"
    stages = [int(found[1]) for detail in told if (found := re.search(r"stage (\d) of 3", detail)) is not None]
    assert stages == sorted(stages), told
    assert told[-1] == "base version 1: done: all have it"
    assert sum("done" in detail for detail in told) == 1
    assert epochs is not None
    assert epochs[0] > 1, "the work was taken over"
