"""Are synchronous calls answered in Kubernetes as on one machine? The contract, then what workers are kept for."""

import asyncio

import pytest
from lightkube.resources.core_v1 import Pod

from contracts import sync_host as contract
from contracts.orders import order
from contracts.sync_host import SyncHostContract
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes.sync_host import KubernetesSyncHost
from hansa.services.service import Synchronous

pytest_plugins = ("real.object_store",)
pytestmark = pytest.mark.deep


@pytest.fixture(autouse=True)
def with_time_for_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "SHORT", 10.0)


@pytest.fixture
def host(scene: Scene) -> KubernetesSyncHost:
    return scene.sync


class TestKubernetesSyncHost(SyncHostContract):
    pass


async def pods(scene: Scene) -> list[str]:
    found = await scene.api.list(Pod, scene.namespace, {})
    return [pod.metadata.name for pod in found if pod.metadata.deletionTimestamp is None]


async def test_a_worker_answers_one_call_after_the_other_and_forgets_each(scene: Scene) -> None:
    asked = order('ls -A; cat "$INPUT_FILE_PATH"; echo x > kept', event=b"aGVsbG8=", cpu=100)
    assert (await scene.sync.invoke(asked)).body == b"input\noutput\nhello"
    (worker,) = await pods(scene)
    assert (await scene.sync.invoke(asked)).body == b"input\noutput\nhello"
    assert await pods(scene) == [worker]


async def test_warm_workers_are_there_before_a_call_and_go_when_nobody_wants_them(scene: Scene) -> None:
    asked = order("echo hi", cpu=100, synchronous=Synchronous(min_scale=1))
    await scene.sync.settle({"tool": asked})
    async with asyncio.timeout(60):
        while not await pods(scene):
            await asyncio.sleep(0.2)
        (worker,) = await pods(scene)
        assert (await scene.sync.invoke(asked)).body == b"hi\n"
        await scene.sync.settle({})
        while worker in await pods(scene):
            await asyncio.sleep(0.2)
