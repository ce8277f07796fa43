"""The parts of a scene as the contracts ask for them, on the Kubernetes all tests of this run share."""

import secrets
from collections.abc import AsyncIterator, Mapping

import pytest

from drivers.kubernetes import scene as scenes
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.job_host import KubernetesJobHost
from hansa.drivers.kubernetes.job_logs import KubernetesLogs
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.drivers.kubernetes.pods import Shape
from hansa.drivers.s3 import OpenStore
from hansa.services import RunOrder
from hansa.storage import ObjectStore
from real.kubernetes import kubernetes_manager
from real.kubernetes.access import Access
from real.kubernetes.cluster import KubernetesCluster


@pytest.fixture(scope="session")
def engine_room(kubernetes: Access) -> Access:
    scenes.bring_images(kubernetes)
    kubernetes_manager.reach_pods(kubernetes)
    return kubernetes


@pytest.fixture
async def scene(engine_room: Access, object_store: OpenStore, kubernetes_namespace: str) -> AsyncIterator[Scene]:
    async with scenes.opened(engine_room, object_store, kubernetes_namespace) as opened:
        yield opened


@pytest.fixture
def host(scene: Scene) -> KubernetesJobHost:
    return scene.host


@pytest.fixture
def logs(scene: Scene) -> KubernetesLogs:
    return scene.logs


@pytest.fixture
def store(scene: Scene) -> ObjectStore:
    return scene.store


@pytest.fixture
def bucket(scene: Scene) -> str:
    return scene.bucket


@pytest.fixture
async def api(kubernetes_api: KubernetesCluster) -> AsyncIterator[Connection]:
    made = Connection.open(kubernetes_api.access.kubeconfig)
    yield made
    await made.close()


@pytest.fixture
async def engine(api: Connection) -> AsyncIterator[Engine]:
    """On an API server without nodes: what is made is there, and runs when a test says so."""
    cluster = f"c-{secrets.token_hex(4)}"
    board = Board(api.client, cluster)
    board.start()

    async def no_keys(_order: RunOrder) -> Mapping[str, str]:
        return {}

    shape = Shape(cluster=cluster, stager_image="localhost/hansa:1")
    homes = Namespaces(api, cluster, default=f"svc-{cluster[2:]}")
    yield Engine(api=api, board=board, shape=shape, homes=homes, store_of=no_keys)
    await board.close()
