"""A job host on the real Kubernetes of this test run, with a store that its pods can reach."""

import secrets
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.job_host import KubernetesJobHost
from hansa.drivers.kubernetes.job_logs import KubernetesLogs
from hansa.drivers.kubernetes.manifests import Shape
from hansa.drivers.s3 import OpenStore, S3Store
from hansa.drivers.s3.relay import Relay
from hansa.services import RunOrder
from hansa.storage import ObjectStore, StoreAddress
from real.kubernetes import hansa_image, images
from real.kubernetes.access import Access

TOOL = "docker.io/library/tool:1"  # what the contracts' `tool:1` means to Kubernetes


@pytest.fixture(scope="session")
def engine_room(kubernetes: Access) -> Access:
    """The cluster, with the images that jobs of tests use."""
    kubernetes.import_image(images.busybox(TOOL))
    kubernetes.import_image(hansa_image.archive())
    return kubernetes


@pytest.fixture
async def store(object_store: OpenStore, engine_room: Access) -> AsyncIterator[ObjectStore]:
    """Reached by pods over the machine's end of their link."""
    inner = urlsplit(object_store.store.address.endpoint)
    host = str(urlsplit(engine_room.server).hostname).rpartition(".")[0] + ".1"
    assert inner.hostname is not None
    assert inner.port is not None
    relay = await Relay.open(host, 0, (inner.hostname, inner.port))
    address = StoreAddress(f"http://{host}:{relay.port}", object_store.store.address.region, verify=True)
    opened = S3Store(address, object_store.keys, reach_at=object_store.store.address.endpoint)
    try:
        yield opened
    finally:
        await opened.close()
        await relay.close()


@pytest.fixture
async def bucket(store: ObjectStore) -> AsyncIterator[str]:
    name = f"test-{secrets.token_hex(8)}"
    await store.create_bucket(name)
    yield name
    await store.delete_bucket(name)


@pytest.fixture
def cluster_id() -> str:
    """Of its own for each test: managers of several clusters may share a Kubernetes, and so may tests."""
    return f"c-{secrets.token_hex(5)}"


@pytest.fixture
async def connection(engine_room: Access) -> AsyncIterator[Connection]:
    opened = Connection.open(engine_room.kubeconfig)
    yield opened
    await opened.close()


@pytest.fixture
async def board(connection: Connection, cluster_id: str) -> AsyncIterator[Board]:
    opened = Board(connection.client, cluster_id)
    opened.start()
    yield opened
    await opened.close()


@pytest.fixture
async def logs(connection: Connection, board: Board, store: ObjectStore, bucket: str) -> KubernetesLogs:
    return KubernetesLogs(connection.client, board, store, f"{bucket}-own", limit=64 * 1024)


@pytest.fixture
async def host(
    connection: Connection,
    board: Board,
    logs: KubernetesLogs,
    store: ObjectStore,
    object_store: OpenStore,
    bucket: str,
    cluster_id: str,
    kubernetes_namespace: str,
) -> AsyncIterator[KubernetesJobHost]:
    async def keys(order: RunOrder) -> Mapping[str, Any]:
        own = object_store.keys
        return {
            "endpoint": store.address.endpoint,
            "region": store.address.region,
            "access_key": own.access_key,
            "secret_key": own.secret_key,
        }

    yield KubernetesJobHost(
        connection,
        board,
        logs,
        Shape(cluster=cluster_id, stager_image=hansa_image.NAME),
        default_namespace=kubernetes_namespace,
        store=store,
        store_of=keys,
        bucket=f"{bucket}-own",
        pull_patience=5,
    )
    await store.delete_bucket(f"{bucket}-own")
