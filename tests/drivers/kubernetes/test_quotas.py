"""Kubernetes holds a user's namespace to the user's quota, and our own pods have room in it."""

import asyncio
import dataclasses
import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event, LimitRange, Namespace, PersistentVolumeClaim, Pod, ResourceQuota, Secret

from contracts.job_host import keys_of
from contracts.orders import order
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes import job_manifest, quota_manifest
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiRefused
from hansa.drivers.kubernetes.job_host import KubernetesJobHost
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.drivers.kubernetes.pods import Shape
from hansa.kernel.quota import QuotaSettings
from hansa.resources import Limits
from hansa.services import RunOrder, StorageIO
from real.kubernetes import hansa_image
from real.kubernetes.access import Access

pytest_plugins = ("real.object_store",)

PATIENCE = 60.0
LIMITS = Limits.of(QuotaSettings(cpu="2", memory="2Gi", gpu=1, volumes=2, disk="2Gi", max_disk_per_volume="1Gi"))
NAME = quota_manifest.name_of("lubeck")


@pytest.fixture
async def api(kubernetes: Access) -> AsyncIterator[Connection]:
    opened = Connection.open(kubernetes.kubeconfig)
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def homes(api: Connection) -> Namespaces:
    return Namespaces(api, "lubeck", default="nobody", limits_of=lambda owner: LIMITS if owner == "alice" else None)


@pytest.fixture
async def namespace(api: Connection, homes: Namespaces) -> AsyncIterator[str]:
    name = f"quota-{secrets.token_hex(6)}"
    try:
        await homes.ensure(name, "alice")
        yield name
    finally:
        await api.delete(Namespace, name)


async def hard(api: Connection, namespace: str) -> dict[str, Any]:
    found = await api.get(ResourceQuota, NAME, namespace)
    assert found is not None
    return dict(found.spec.hard)


async def test_it_comes_with_the_namespace_and_follows_the_users(
    api: Connection, homes: Namespaces, namespace: str
) -> None:
    assert await hard(api, namespace) == {
        "requests.cpu": "2200m",  # 2 cores, and 20 containers of ours
        "requests.memory": "3328Mi",
        "requests.nvidia.com/gpu": "1",
        "persistentvolumeclaims": "2",
        "requests.storage": "2Gi",
        "requests.ephemeral-storage": "10560Mi",
    }
    more = Limits.of(QuotaSettings(cpu="4", volumes=9))
    await homes.apply_quota(namespace, more)
    after = await hard(api, namespace)
    assert (after["requests.cpu"], after["persistentvolumeclaims"]) == ("4400m", "9")
    await homes.quota_changed("alice")
    assert (await hard(api, namespace))["requests.cpu"] == "2200m"
    await homes.apply_quota(namespace, None)
    assert await api.get(ResourceQuota, NAME, namespace) is None
    assert await api.get(LimitRange, NAME, namespace) is None


async def start(api: Connection, namespace: str, asked: RunOrder) -> None:
    shape = Shape(cluster="lubeck", stager_image=hansa_image.NAME)
    made = await api.create(job_manifest.secret(asked, namespace, shape))
    assert isinstance(made, Secret)
    await api.create(job_manifest.job(asked, namespace, shape, made))


async def pods(api: Connection, namespace: str, name: str) -> list[Any]:
    return await api.list(Pod, namespace, {"hansa/job": name})


async def test_all_of_a_users_quota_can_be_used_with_our_containers_beside(api: Connection, namespace: str) -> None:
    out = (StorageIO(storage_provider="minio.default", path="b/out"),)
    keys = {"minio.default": {"endpoint": "http://store", "access_key": "lent", "secret_key": "lent"}}
    asked = [order("sleep 60", output=out, providers=keys, cpu=200, memory=2**31 // 10) for _ in range(10)]
    for one in asked:
        await start(api, namespace, one)
    async with asyncio.timeout(PATIENCE):
        while not all([await pods(api, namespace, one.name) for one in asked]):
            await asyncio.sleep(0.1)
    (pod,) = await pods(api, namespace, asked[0].name)
    resources = {one.name: one.resources for one in (*pod.spec.containers, *pod.spec.initContainers)}
    assert resources["script"].requests == resources["script"].limits
    assert resources["stage-out"].limits["cpu"] == "1"


async def test_what_is_beyond_waits(api: Connection, homes: Namespaces, namespace: str) -> None:
    large = order("true", cpu=5000, seconds=60)
    await start(api, namespace, large)
    async with asyncio.timeout(PATIENCE):
        while "exceeded quota" not in await said(api, namespace, large.name):
            await asyncio.sleep(0.1)
    assert await pods(api, namespace, large.name) == []
    await homes.apply_quota(namespace, Limits.of(QuotaSettings(cpu="8", memory="8Gi")))
    async with asyncio.timeout(PATIENCE):
        while not await pods(api, namespace, large.name):
            await asyncio.sleep(0.1)
    await api.delete(Job, large.name, namespace)


async def said(api: Connection, namespace: str, name: str) -> str:
    told = await api.list(Event, namespace, fields={"involvedObject.name": name})
    return " ".join(one.message or "" for one in told)


async def test_a_container_that_says_nothing_is_counted_small(api: Connection, namespace: str) -> None:
    safe = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    body = {"name": "plain", "image": "x", "securityContext": safe}
    about = {"name": "plain", "namespace": namespace}
    spec = {"containers": [body], "nodeName": "nowhere"}
    made = await until_made(api, Pod.from_dict({"metadata": about, "spec": spec}))
    assert made.spec.containers[0].resources.requests == {
        "cpu": "10m",
        "memory": "64Mi",
        "ephemeral-storage": "16Mi",
    }
    assert made.spec.containers[0].resources.limits is None


async def until_made(api: Connection, asked: Any) -> Any:
    """Pods are refused before a controller has made the namespace's account."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await api.create(asked)
            except ApiRefused as error:
                if "serviceaccount" not in error.message:
                    raise
                await asyncio.sleep(0.1)


async def test_volumes_are_counted_and_measured(api: Connection, namespace: str) -> None:
    def claim(name: str, size: str) -> Any:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return PersistentVolumeClaim.from_dict({"metadata": {"name": name, "namespace": namespace}, "spec": spec})

    with pytest.raises(ApiRefused, match="maximum storage usage"):
        await api.create(claim("large", "2Gi"))
    await api.create(claim("a", "1Gi"))
    await api.create(claim("b", "500Mi"))
    with pytest.raises(ApiRefused, match="exceeded quota"):
        await api.create(claim("c", "500Mi"))


async def test_a_job_of_all_that_a_user_has_runs_with_its_files(scene: Scene) -> None:
    homes = Namespaces(scene.api, "lubeck", default="nobody", owner_of=lambda _: "alice", limits_of=lambda _: LIMITS)
    engine = dataclasses.replace(scene.engine, homes=homes)
    host = KubernetesJobHost(engine, scene.logs, store=scene.store, bucket=f"{scene.bucket}-own", pull_patience=5)
    out = (StorageIO(storage_provider="minio.default", path=f"{scene.bucket}/out"),)
    small = Limits.of(QuotaSettings(cpu="0.5", memory="64Mi"))
    asked = order('echo x > "$TMP_OUTPUT_DIR/x"', output=out, namespace=scene.namespace, seconds=60)
    assert (asked.cpu, asked.memory) == (small.cpu, small.memory)
    await homes.ensure(scene.namespace)
    await homes.apply_quota(scene.namespace, small)
    outcome = await host.run(asked)
    assert (outcome.succeeded, outcome.reason) == (True, "")
    assert await keys_of(scene.store, scene.bucket) == ["out/x"]
