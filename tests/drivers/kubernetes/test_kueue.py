"""Do users' jobs stand in line where Kueue admits them? Its part, to let a Job begin, is played by hand."""

import asyncio
import secrets
from dataclasses import replace

import pytest
from lightkube.resources.batch_v1 import Job

from contracts.orders import order
from drivers.kubernetes.custom_kinds import defined
from drivers.kubernetes.scene import Scene
from hansa import services
from hansa.drivers.kubernetes import quota_manifest
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.job_host import KubernetesJobHost
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.identity import ADMIN_UID
from hansa.services import RunOrder

pytest_plugins = ("real.object_store",)
SECONDS = 60.0


@pytest.fixture
def host(scene: Scene) -> KubernetesJobHost:
    engine = replace(scene.engine, shape=replace(scene.engine.shape, queue="line"))
    return KubernetesJobHost(engine, scene.logs, store=scene.store, bucket=f"{scene.bucket}-own", pending_patience=1)


async def made(scene: Scene, name: str) -> Job:
    async with asyncio.timeout(SECONDS):
        while (found := await scene.api.get(Job, name, scene.namespace)) is None:
            await asyncio.sleep(0.1)
    assert isinstance(found, Job)
    return found


async def test_a_users_job_waits_until_it_is_admitted(scene: Scene, host: KubernetesJobHost) -> None:
    said: list[str] = []

    async def explain(reason: str) -> None:
        said.append(reason)

    job = replace(order("echo in", owner="ann@test", seconds=60), explain=explain)
    running = asyncio.create_task(host.run(job))
    waits = await made(scene, job.name)
    assert waits.metadata is not None
    assert waits.metadata.labels is not None
    assert waits.metadata.labels["kueue.x-k8s.io/queue-name"] == "line"
    async with asyncio.timeout(SECONDS):
        while not any("Kueue" in reason for reason in said):
            await asyncio.sleep(0.1)
    await scene.api.merge(Job, job.name, scene.namespace, {"spec": {"suspend": False}})
    async with asyncio.timeout(SECONDS):
        assert (await running).succeeded
    await host.discard(job.name)


async def test_one_that_may_go_elsewhere_does_not_wait_for_ever(scene: Scene, host: KubernetesJobHost) -> None:
    job: RunOrder = replace(order("true", owner="ann@test", seconds=60), movable=True)
    async with asyncio.timeout(SECONDS):
        with pytest.raises(services.NoRoom, match="Kueue"):
            await host.run(job)


async def test_the_admins_jobs_do_not_stand_in_line(scene: Scene, host: KubernetesJobHost) -> None:
    job = order("true", owner=ADMIN_UID, seconds=60)
    async with asyncio.timeout(SECONDS):
        assert (await host.run(job)).succeeded
    await host.discard(job.name)


async def test_a_users_namespace_gets_a_queue(api: Connection) -> None:
    await defined(api, quota_manifest.LOCAL_QUEUE, "localqueues")
    name = f"t{secrets.token_hex(4)}"
    homes = Namespaces(api, "lubeck", default="svc", queue="science", owner_of=lambda _: "ann@test")
    await homes.ensure(name)
    found = await api.get(quota_manifest.LOCAL_QUEUE, quota_manifest.name_of("lubeck"), name)
    assert found is not None
    assert found.spec == {"clusterQueue": "science"}
