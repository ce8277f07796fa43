"""A caller goes at the very moment in which there is a worker for the call: nobody keeps that worker.

The API server is real, and pods are made; that a node runs them is written by the test.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from lightkube.resources.core_v1 import PodStatus, Secret

from contracts.orders import order
from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.sync_host import KubernetesSyncHost
from hansa.services import Reply
from hansa.services.service import Synchronous

SECONDS = 60.0


@pytest.fixture
async def host(engine: Engine) -> AsyncIterator[KubernetesSyncHost]:
    made = KubernetesSyncHost(engine)
    yield made
    await made.close()


async def workers(engine: Engine) -> set[str]:
    wanted: dict[str, Any] = {**labels.of_cluster(engine.shape.cluster), labels.WORKER: None}
    return {one.metadata.name for one in await engine.api.list(Secret, engine.homes.placed(""), wanted)}


async def until(engine: Engine, count: int) -> set[str]:
    async with asyncio.timeout(SECONDS):
        while len(found := await workers(engine)) != count:
            await asyncio.sleep(0.05)
    return found


async def is_ready(engine: Engine, name: str) -> None:
    """Its node says so."""
    async with asyncio.timeout(SECONDS):
        while engine.board.worker(name) is None:
            await asyncio.sleep(0.05)
    said = {"conditions": [{"type": "Ready", "status": "True"}], "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
    await engine.api.merge(PodStatus, name, engine.homes.placed(""), {"status": said})


async def goes_when_it_is_over(caller: "asyncio.Task[Reply]", work: str) -> None:
    """The caller is cancelled in the same turn of the loop in which this task ends."""
    async with asyncio.timeout(SECONDS):
        while not (found := [task for task in asyncio.all_tasks() if task.get_name() == work]):
            await asyncio.sleep(0)
    found[0].add_done_callback(lambda _: caller.cancel())


async def test_a_new_worker_without_its_caller(engine: Engine, host: KubernetesSyncHost) -> None:
    caller = asyncio.create_task(host.invoke(order("true")))
    await goes_when_it_is_over(caller, "make a worker of tool")
    (name,) = await until(engine, 1)
    await is_ready(engine, name)
    await asyncio.wait({caller})
    assert caller.cancelled()
    await until(engine, 0)


async def test_a_worker_that_came_back_without_its_caller(engine: Engine, host: KubernetesSyncHost) -> None:
    """It was taken in place of a new one, which is given up."""
    warm = order("true", synchronous=Synchronous(min_scale=1))
    await host.settle({"tool": warm})
    (name,) = await until(engine, 1)
    caller = asyncio.create_task(host.invoke(warm))
    await goes_when_it_is_over(caller, "make a worker of tool")
    await until(engine, 2)
    await is_ready(engine, name)
    await asyncio.wait({caller})
    async with asyncio.timeout(SECONDS):
        while name in await workers(engine):  # the next one that stands ready has another name
            await asyncio.sleep(0.05)


async def test_an_idle_worker_that_is_given_up_while_it_is_taken_is_still_its_callers(
    engine: Engine, host: KubernetesSyncHost
) -> None:
    """Its owner lacks something elsewhere, which is noticed when the worker counts for who calls."""
    warm = order("true", synchronous=Synchronous(min_scale=1))
    await host.settle({"tool": warm})
    (name,) = await until(engine, 1)
    await is_ready(engine, name)
    async with asyncio.timeout(SECONDS):
        while not host._pools["tool"].idle:
            await asyncio.sleep(0.05)
    engine.admission.on_release(lambda: host._give_up(warm.service.owner))
    reply = await host.invoke(warm)
    assert "the worker did not answer" in reply.reason  # there is none behind what the test wrote
