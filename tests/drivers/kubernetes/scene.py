"""A job host on a real Kubernetes, with a store that its pods can reach."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from hansa.drivers.egress import system_resolver
from hansa.drivers.kubernetes import NetworkPolicies, NetworkSources, network_rules
from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.exposed_host import KubernetesExposedHost
from hansa.drivers.kubernetes.job_host import KubernetesJobHost
from hansa.drivers.kubernetes.job_logs import KubernetesLogs
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.drivers.kubernetes.pods import Shape
from hansa.drivers.kubernetes.sync_host import KubernetesSyncHost
from hansa.drivers.s3 import OpenStore, S3Store
from hansa.drivers.s3.relay import Relay
from hansa.kernel.egress import Rule
from hansa.kernel.kubernetes import NetworkSettings
from hansa.services import RunOrder
from hansa.storage import ObjectStore, StoreAddress
from real.kubernetes import hansa_image, kubernetes_manager
from real.kubernetes.access import Access

TOOL = "docker.io/library/tool:1"  # what the contracts' `tool:1` means to Kubernetes


@dataclass(frozen=True, slots=True)
class Scene:
    engine: Engine
    host: KubernetesJobHost
    exposed: KubernetesExposedHost
    sync: KubernetesSyncHost
    logs: KubernetesLogs
    board: Board
    api: Connection
    store: ObjectStore
    bucket: str  # of the test
    namespace: str


def bring_images(access: Access) -> None:
    kubernetes_manager.bring_images(access, TOOL)


@contextlib.asynccontextmanager
async def opened(access: Access, object_store: OpenStore, namespace: str) -> AsyncIterator[Scene]:
    """A cluster id of its own for each: managers of several clusters may share a Kubernetes, and so may tests."""
    cluster, bucket = f"c-{secrets.token_hex(5)}", f"test-{secrets.token_hex(8)}"
    own = f"{bucket}-own"
    async with contextlib.AsyncExitStack() as undo:
        store = await undo.enter_async_context(_reachable(access, object_store))
        await store.create_bucket(bucket)
        for each in (bucket, own):
            undo.push_async_callback(store.delete_bucket, each)
        api = Connection.open(access.kubeconfig)
        undo.push_async_callback(api.close)
        board = Board(api.client, cluster)
        board.start()
        undo.push_async_callback(board.close)
        logs = KubernetesLogs(api.client, board, store, own, limit=64 * 1024)
        assert object_store.loans is not None
        lend, end_keys = object_store.loans.lend, object_store.loans.end

        async def keys_of(order: RunOrder) -> Mapping[str, Any]:
            return store.address.with_keys(await lend(order.name, order.reach))

        sources = NetworkSources(
            cluster=cluster,
            network=NetworkSettings(),
            private="",
            outside=True,
            allow=Rule.of(()),
            store=store.address.endpoint,
            resolve=system_resolver,
        )
        policies = NetworkPolicies(api, cluster, lambda: network_rules(api, sources))
        keeping = asyncio.create_task(policies.work(), name="keep network policies")
        undo.push_async_callback(ended, keeping)
        engine = Engine(
            api=api,
            board=board,
            shape=Shape(cluster=cluster, stager_image=hansa_image.NAME),
            homes=Namespaces(api, cluster, default=namespace),
            store_of=keys_of,
            policies=policies,
            end_keys=end_keys,
        )
        exposed = KubernetesExposedHost(engine)
        undo.push_async_callback(exposed.close)
        sync = KubernetesSyncHost(engine, idle=30)
        undo.push_async_callback(sync.close)
        host = KubernetesJobHost(engine, logs, store=store, bucket=own, pull_patience=5)
        yield Scene(engine, host, exposed, sync, logs, board, api, store, bucket, namespace)


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


@contextlib.asynccontextmanager
async def _reachable(access: Access, object_store: OpenStore) -> AsyncIterator[ObjectStore]:
    """Over the machine's end of the cluster's link."""
    inner = urlsplit(object_store.store.address.endpoint)
    host = kubernetes_manager.near_end(access)
    assert inner.hostname is not None
    assert inner.port is not None
    relay = await Relay.open(host, 0, (inner.hostname, inner.port))
    address = StoreAddress(f"http://{host}:{relay.port}", object_store.store.address.region, verify=True)
    store = S3Store(address, object_store.keys, reach_at=object_store.store.address.endpoint)
    try:
        yield store
    finally:
        await store.close()
        await relay.close()
