"""Are synchronous calls answered in Kubernetes as on one machine? The contract, then what workers are kept for."""

import asyncio
import base64
from dataclasses import replace

import pytest
from lightkube.resources.core_v1 import Pod

from contracts import sync_host as contract
from contracts.orders import order
from contracts.sync_host import SyncHostContract
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes.sync_host import KubernetesSyncHost
from hansa.resources import Share
from hansa.services import NoWorker
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


async def test_what_a_script_closed_is_gone_too(scene: Scene) -> None:
    """In a real pod, with the tools of our own image. What else may be left: `stager/test_worker.py`."""
    script = 'ls -A "$TMP_OUTPUT_DIR"; cat "$INPUT_FILE_PATH"; . "$INPUT_FILE_PATH"'
    leaving = b'cd "$TMP_OUTPUT_DIR"; mkdir kept; echo secret > kept/f; chmod 0 kept/f; chmod 0555 kept'
    asked = order(script, event=base64.b64encode(leaving), cpu=100)
    assert (await scene.sync.invoke(asked)).exit_code == 0
    (worker,) = await pods(scene)
    assert (await scene.sync.invoke(replace(asked, event=base64.b64encode(b"true")))).body == b"true"
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


async def test_workers_stay_within_the_share_of_who_calls_and_idle_ones_make_room(scene: Scene) -> None:
    admission = scene.engine.admission
    admission.shares.share_of = lambda owner: Share(250)
    asked = order("sleep 5", cpu=200, seconds=60, owner="alice")
    first = asyncio.create_task(scene.sync.invoke(asked))
    async with asyncio.timeout(60):
        while not await pods(scene):
            await asyncio.sleep(0.1)
    assert admission.shares.of("alice").cpu == 200
    with pytest.raises(NoWorker, match="of your quota of 250m 50m are left"):
        await scene.sync.invoke(replace(asked, seconds=0.5))
    await first
    (idle,) = await pods(scene)
    other = order("echo hi", cpu=200, seconds=60, owner="alice", synchronous=Synchronous(max_scale=1))
    assert (await scene.sync.invoke(other)).body == b"hi\n"  # it is another definition, and the idle one went for it
    assert idle not in await pods(scene)
    assert admission.shares.of("alice").cpu == 200
