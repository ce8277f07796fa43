"""A manager that died had made the Secrets of something and no more: whoever comes next takes them away."""

import asyncio

from lightkube.resources.core_v1 import Secret

from contracts.orders import order
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes import exposed_manifest, job_manifest, labels, worker_manifest

pytest_plugins = ("real.object_store",)


async def secrets(scene: Scene) -> list[str]:
    wanted = labels.of_cluster(scene.engine.shape.cluster)
    return sorted(one.metadata.name for one in await scene.api.list(Secret, scene.namespace, dict(wanted)))


async def test_of_a_job(scene: Scene) -> None:
    job = order("true")
    await scene.api.create(job_manifest.secret(job, scene.namespace, scene.engine.shape))
    assert await scene.host.present() == [job.name]
    await scene.host.discard(job.name)
    assert await secrets(scene) == []


async def test_of_an_exposed_service(scene: Scene) -> None:
    wanted = order("true")
    for one in exposed_manifest.secrets(wanted, scene.namespace, scene.engine.shape):
        await scene.api.create(one)
    assert len(await secrets(scene)) == 2
    await scene.exposed.remove(wanted.service.name)
    assert await secrets(scene) == []


async def test_of_a_worker(scene: Scene) -> None:
    wanted = order("true")
    made = worker_manifest.secret(wanted, "some-worker", scene.namespace, scene.engine.shape, "token")
    await scene.api.create(made)
    async with asyncio.timeout(60):
        while await secrets(scene):
            await asyncio.sleep(0.2)
