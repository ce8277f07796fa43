"""Do pods keep what they write in a volume? Jobs one after the other, a service and a worker, on a disk of the node."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import PersistentVolumeClaim

from contracts import exposed_host as contract
from contracts.exposed_host import ask, server, until_state
from contracts.orders import order
from contracts.volume_places import until_phase, volume
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes import pod_status
from hansa.drivers.kubernetes.claims import Claims
from hansa.services import VolumeMount
from hansa.storage import Volume
from real.kubernetes import disks
from real.kubernetes.access import Access

pytest_plugins = ("real.object_store",)
pytestmark = pytest.mark.deep


@pytest.fixture
async def disk(kubernetes: Access, tmp_path: Path) -> AsyncIterator[str]:
    """A disk of the node, as an administrator would offer it; the name of its class."""
    name = f"class-{secrets.token_hex(5)}"
    async with disks.offered(kubernetes, tmp_path / "disk", storage_class=name):
        yield name


@pytest.fixture
async def claims(scene: Scene, disk: str) -> AsyncIterator[Claims]:
    async def nothing(namespace: str) -> None:
        """Its namespace is there."""

    opened = Claims(scene.api, scene.engine.shape.cluster, ensure=nothing, storage_class=disk)
    opened.start()
    yield opened
    await opened.close()


@pytest.fixture
async def mount(claims: Claims, scene: Scene) -> VolumeMount:
    kept = volume(scene.namespace)
    await claims.make(kept)
    await until_phase(claims, kept, "Bound")
    place = claims.place(scene.namespace, kept.name)
    return VolumeMount(place.source, "/data", place.gid, place.one_node)


async def test_a_job_finds_what_the_one_before_it_wrote(scene: Scene, mount: VolumeMount) -> None:
    writer = order("umask; echo from run to run > /data/kept && ls -ln /data", mounts=(mount,), cpu=100, seconds=60)
    outcome = await scene.host.run(writer)
    assert outcome.succeeded, await scene.logs.read(writer.name, timestamps=False)
    await scene.host.discard(writer.name)
    reader = order("cat /data/kept", mounts=(mount,), cpu=100, seconds=60)
    assert (await scene.host.run(reader)).succeeded
    assert "from run to run" in str(await scene.logs.read(reader.name, timestamps=False))
    await scene.host.discard(reader.name)


async def test_a_service_and_a_worker_share_a_volume_and_its_claim_goes_with_it(
    scene: Scene, claims: Claims, mount: VolumeMount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contract, "ADDRESS", "0.0.0.0")
    monkeypatch.setattr(contract, "PATIENCE", 60.0)
    await scene.exposed.apply(server("hello", before="date > /data/seen\n", mounts=(mount,), cpu=100), running=True)
    await until_state(scene.exposed, "ready")
    assert await ask(scene.exposed) == b"hello"
    worker = order("test -s /data/seen && echo found", name="worker", mounts=(mount,), cpu=100, seconds=60)
    assert (await scene.sync.invoke(worker)).body == b"found\n"
    await scene.exposed.remove("tool")
    await scene.sync.settle({})
    await claims.remove(scene.namespace, "models")
    async with asyncio.timeout(60):
        while await scene.api.get(PersistentVolumeClaim, "models", scene.namespace) is not None:
            await asyncio.sleep(0.2)


async def test_a_job_whose_volume_cannot_be_bound_says_so(scene: Scene, claims: Claims) -> None:
    too_much = Volume(scene.namespace, "huge", "alice", 2**40, "", "retain", 0.0)
    await claims.make(too_much)
    place = claims.place(scene.namespace, "huge")
    asked = order("true", mounts=(VolumeMount(place.source, "/data", place.gid, place.one_node),), cpu=100, seconds=60)
    running = asyncio.create_task(scene.host.run(asked), name="a job that waits")
    try:
        async with asyncio.timeout(60):
            while "volume cannot be used yet" not in why(scene, asked.name):
                await asyncio.sleep(0.1)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await scene.host.discard(asked.name)
    assert claims.standing(scene.namespace, "huge").phase == "Pending"


def why(scene: Scene, job: str) -> str:
    pod = scene.board.pod(job)
    return pod_status.no_room(pod) if pod is not None else ""
