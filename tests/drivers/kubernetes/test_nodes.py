"""How much do the nodes have, and how busy are they? Against a real API server, with nodes made by hand.

Where nothing measures what is used, a resource of the very name and shape that metrics-server serves stands in for it.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from lightkube import ApiError, AsyncClient
from lightkube.generic_resource import create_global_resource
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.core_v1 import Namespace, Node, Pod, ServiceAccount

from drivers.kubernetes import restricted
from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.nodes import KubernetesNodes, counted, requests_of
from hansa.resources import Needs
from hansa.settings import JobSettings
from real.kubernetes.cluster import KubernetesCluster

GIB = 2**30
CLUSTER = "measured"
NodeMetrics: Any = create_global_resource("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes")


def container(cpu: str, memory: str = "0", **more: Any) -> dict[str, Any]:
    return {"name": "one", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def pod(*containers: dict[str, Any], first: tuple[dict[str, Any], ...] = (), **spec: Any) -> Any:
    parts = {"containers": list(containers), "initContainers": list(first), **spec}
    return Pod.from_dict({"metadata": {"name": "p"}, "spec": parts})


def test_requests_are_counted_as_the_scheduler_does() -> None:
    sidecar = container("100m", restartPolicy="Always")
    assert requests_of(pod(container("1", "1Gi"), container("500m"))) == Needs(1500, GIB)
    assert requests_of(pod(container("1"), first=(container("3"),))) == Needs(3000, 0)
    assert requests_of(pod(container("1"), first=(sidecar, container("3")))) == Needs(3100, 0)
    assert requests_of(pod(container("1"), first=(container("500m"), sidecar))) == Needs(1100, 0)
    assert requests_of(pod({"name": "none", "image": "x"}, overhead={"cpu": "50m"})) == Needs(50, 0)


def test_a_control_plane_counts_only_where_there_is_nothing_else() -> None:
    worker, plane = node("w"), node("p", {"node-role.kubernetes.io/control-plane": ""})
    assert [one.metadata.name for one in counted([plane, worker])] == ["w"]
    assert [one.metadata.name for one in counted([plane])] == ["p"]


def node(name: str, marks: dict[str, str] | None = None, **status: Any) -> Any:
    there = {"allocatable": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2"}, **status}
    return Node.from_dict({"metadata": {"name": name, "labels": marks or {}}, "status": there})


@pytest.fixture
async def api(kubernetes_api: KubernetesCluster) -> AsyncIterator[AsyncClient]:
    async with kubernetes_api.access.client() as client:
        yield client


@pytest.fixture
async def two_nodes(api: AsyncClient) -> AsyncIterator[None]:
    """One is ready, one is not; pods of ours and of others are on the first."""
    made: list[tuple[Any, str, str | None]] = []
    space = f"measured-{secrets.token_hex(3)}"
    ready = [{"type": "Ready", "status": "True"}]
    for name, conditions in (("large", ready), ("away", [{"type": "Ready", "status": "Unknown"}])):
        await _make(api, Node, {"metadata": {"name": name}})
        made.append((Node, name, None))
        status = {"status": {"allocatable": {"cpu": "4", "memory": "8Gi"}, "conditions": conditions}}
        await api.patch(Node.Status, name, status)
    await _make(api, Namespace, {"metadata": {"name": space}})
    made.append((Namespace, space, None))
    async with asyncio.timeout(30):
        while not await _there(api, space):
            await asyncio.sleep(0.05)
    job = {labels.JOB: "j", **labels.of_cluster(CLUSTER)}
    for name, marks, cpu in (("ours", job, "1"), ("others", {}, "500m"), ("unplaced", {}, "2")):
        spec = {"containers": [container(cpu, "1Gi")]} | ({} if name == "unplaced" else {"nodeName": "large"})
        await _make(api, Pod, {"metadata": {"name": name, "namespace": space, "labels": marks}, "spec": spec})
        made.append((Pod, name, space))
    yield
    for kind, name, namespace in reversed(made):
        with contextlib.suppress(ApiError):
            await api.delete(kind, name, namespace=namespace, grace_period=0)


async def _make(api: AsyncClient, kind: Any, one: dict[str, Any]) -> None:
    await api.create(kind.from_dict(one))


async def _there(api: AsyncClient, namespace: str) -> bool:
    try:
        await api.get(ServiceAccount, "default", namespace=namespace)
    except ApiError:
        return False
    return True


@pytest.fixture
async def nodes(kubernetes_api: KubernetesCluster, two_nodes: None) -> AsyncIterator[KubernetesNodes]:
    connection = Connection.open(kubernetes_api.access.kubeconfig)
    yield KubernetesNodes(connection, CLUSTER, JobSettings())
    await connection.close()


async def test_from_requests_alone(nodes: KubernetesNodes) -> None:
    await nodes.refresh()
    seen = {one.name: one for one in nodes.look()}
    large = seen["large"]
    assert (large.cpu, large.memory, large.ready) == (4000, 8 * GIB, True)
    assert (large.cpu_requested, large.memory_requested) == (1500, 2 * GIB)
    assert (large.cpu_used, large.memory_used) == (1500, 2 * GIB)
    assert not seen["away"].ready
    assert nodes.whole() == nodes.largest() == Needs(4000, 8 * GIB)
    # what our own jobs hold is promised by us, and counted there
    assert nodes.capacity() == Needs(3500, 7 * GIB)
    assert nodes.capacity_with(JobSettings(cpu="2", memory="1Ti")) == Needs(2000, 7 * GIB)


async def test_use_is_what_is_measured(nodes: KubernetesNodes, api: AsyncClient) -> None:
    async with _measured(api, "large", cpu="1234567890n", memory="3Gi"):
        await nodes.refresh()
        (large,) = (one for one in nodes.look() if one.name == "large")
        assert (large.cpu_used, large.memory_used) == (1235, 3 * GIB)
        assert large.cpu_requested == 1500


@contextlib.asynccontextmanager
async def _measured(api: AsyncClient, name: str, **usage: str) -> AsyncIterator[None]:
    definition = {
        "metadata": {
            "name": "nodes.metrics.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": "metrics.k8s.io",
            "scope": "Cluster",
            "names": {"plural": "nodes", "singular": "node", "kind": "NodeMetrics", "listKind": "NodeMetricsList"},
            "versions": [
                {
                    "name": "v1beta1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    await _make(api, CustomResourceDefinition, definition)
    try:
        async with asyncio.timeout(30):
            while not await _created(api, {"metadata": {"name": name}, "usage": usage}):
                await asyncio.sleep(0.05)
        yield
    finally:
        await api.delete(CustomResourceDefinition, "nodes.metrics.k8s.io")


async def _created(api: AsyncClient, one: dict[str, Any]) -> bool:
    """A kind is served a moment after it was defined."""
    try:
        await api.create(NodeMetrics(one))
    except httpx2.HTTPStatusError as error:
        if error.response.status_code != 404:
            raise
        return False
    return True


async def test_without_the_right_to_look_the_settings_decide(kubernetes_api: KubernetesCluster, tmp_path: Path) -> None:
    access = kubernetes_api.access
    async with access.client() as api:
        file = await restricted.account(api, access, tmp_path / "account", {"one": ["pods"]})
    connection = Connection.open(file)
    given = JobSettings(cpu="8", memory="16Gi")
    blind = KubernetesNodes(connection, CLUSTER, given, listed=lambda: ("one",))
    await blind.refresh()
    assert blind.look() == ()
    assert blind.capacity() == Needs(8000, 16 * GIB)
    await connection.close()
