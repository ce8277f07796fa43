"""Whatever happens to the cluster, a job ends once, with the truth: no second run, no lost output, a reason."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod

from contracts.job_host import keys_of, log_of
from contracts.orders import order
from drivers.kubernetes import scene as scenes
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes import job_manifest
from hansa.drivers.kubernetes.pods import Shape
from hansa.drivers.s3 import OpenStore
from hansa.services import Outcome, RunOrder, StorageIO
from real.kubernetes import hansa_image
from real.kubernetes.cluster import Component, KubernetesCluster
from real.kubernetes.fixtures import fresh_namespace

pytest_plugins = ("real.object_store",)
pytestmark = pytest.mark.deep

PATIENCE = 90.0


@pytest.fixture
async def hurt(breakable_kubernetes: KubernetesCluster, object_store: OpenStore) -> AsyncIterator[Scene]:
    """On a cluster of this file's own, which tests may hurt."""
    scenes.bring_images(breakable_kubernetes.access)
    async with (
        fresh_namespace(breakable_kubernetes.access) as namespace,
        scenes.opened(breakable_kubernetes.access, object_store, namespace) as opened,
    ):
        yield opened


def counted(scene: Scene, seconds: float) -> RunOrder:
    """Says by a random number that it runs, and leaves a file."""
    script = f'cat /proc/sys/kernel/random/uuid; sleep {seconds:g}; echo done > "$TMP_OUTPUT_DIR/x"'
    out = (StorageIO(storage_provider="minio.default", path=f"{scene.bucket}/out"),)
    return order(script, output=out, seconds=60, cpu=100)


async def until_runs(scene: Scene, name: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while len((await scene.logs.live(name) or "").splitlines()) < 1:
            await asyncio.sleep(0.1)


async def ended(running: "asyncio.Task[Outcome]") -> Outcome:
    async with asyncio.timeout(PATIENCE):
        return await running


async def ran_once(scene: Scene, job: RunOrder, running: "asyncio.Task[Outcome]") -> None:
    outcome = await ended(running)
    assert (outcome.succeeded, outcome.reason) == (True, "")
    assert await keys_of(scene.store, scene.bucket) == ["out/x"]
    said = await log_of(scene.logs, job.name)
    assert len([line for line in said.splitlines() if len(line) == 36]) == 1


async def test_the_api_server_dies_while_a_job_runs(hurt: Scene, breakable_kubernetes: KubernetesCluster) -> None:
    job = counted(hurt, 2)
    running = asyncio.create_task(hurt.host.run(job))
    await until_runs(hurt, job.name)
    breakable_kubernetes.kill(Component.API)
    await asyncio.sleep(3)  # the script ends, and nobody can say so
    breakable_kubernetes.again(Component.API)
    await ran_once(hurt, job, running)


async def test_a_job_waits_for_an_api_server_that_is_away(hurt: Scene, breakable_kubernetes: KubernetesCluster) -> None:
    breakable_kubernetes.kill(Component.API)
    job = counted(hurt, 0)
    running = asyncio.create_task(hurt.host.run(job))
    await asyncio.sleep(1)
    assert not running.done()
    breakable_kubernetes.again(Component.API)
    await ran_once(hurt, job, running)


async def test_etcd_dies_while_a_job_runs(hurt: Scene, breakable_kubernetes: KubernetesCluster) -> None:
    job = counted(hurt, 2)
    running = asyncio.create_task(hurt.host.run(job))
    await until_runs(hurt, job.name)
    breakable_kubernetes.kill(Component.ETCD)
    await asyncio.sleep(3)
    breakable_kubernetes.again(Component.ETCD)
    await ran_once(hurt, job, running)


async def test_the_link_is_cut_while_a_job_runs(hurt: Scene, breakable_kubernetes: KubernetesCluster) -> None:
    job = counted(hurt, 2)
    running = asyncio.create_task(hurt.host.run(job))
    await until_runs(hurt, job.name)
    breakable_kubernetes.cut()  # the pod cannot reach the store either
    await asyncio.sleep(5)
    breakable_kubernetes.heal()
    await ran_once(hurt, job, running)


async def test_the_manager_died_between_secret_and_job(hurt: Scene) -> None:
    job = order("cat /proc/sys/kernel/random/uuid", cpu=100, seconds=60)
    shape = Shape(cluster="whoever", stager_image=hansa_image.NAME)
    assert await hurt.api.create(job_manifest.secret(job, hurt.namespace, shape)) is not None
    outcome = await ended(asyncio.create_task(hurt.host.run(job)))
    assert outcome.succeeded


async def test_a_pod_that_somebody_deletes_fails_its_job(hurt: Scene) -> None:
    job = order("sleep 50", cpu=100, seconds=60)
    running = asyncio.create_task(hurt.host.run(job))
    async with asyncio.timeout(PATIENCE):
        while (pod := hurt.board.pod(job.name)) is None:
            await asyncio.sleep(0.1)
    await hurt.api.delete(Pod, pod.metadata.name, hurt.namespace, grace=1)
    outcome = await ended(running)
    assert not outcome.succeeded
    assert outcome.reason


async def test_an_evicted_pod_is_replaced(hurt: Scene) -> None:
    job = counted(hurt, 2)
    running = asyncio.create_task(hurt.host.run(job))
    await until_runs(hurt, job.name)
    pod = hurt.board.pod(job.name)
    assert pod is not None
    about = ObjectMeta(name=pod.metadata.name, namespace=hurt.namespace)
    await hurt.api.client.create(Pod.Eviction(metadata=about), pod.metadata.name, namespace=hurt.namespace)
    outcome = await ended(running)
    assert (outcome.succeeded, outcome.reason) == (True, "")
    assert await keys_of(hurt.store, hurt.bucket) == ["out/x"]


async def test_a_namespace_that_somebody_deletes_ends_its_jobs(hurt: Scene) -> None:
    job = order("sleep 50", cpu=100, seconds=60)
    running = asyncio.create_task(hurt.host.run(job))
    async with asyncio.timeout(PATIENCE):
        while hurt.board.pod(job.name) is None:
            await asyncio.sleep(0.1)
    await hurt.api.delete(Namespace, hurt.namespace)
    outcome = await ended(running)
    assert not outcome.succeeded
    assert outcome.reason
    await hurt.host.discard(job.name)
