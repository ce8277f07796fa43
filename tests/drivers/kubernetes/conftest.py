"""The parts of a scene as the contracts ask for them, on the Kubernetes all tests of this run share."""

from collections.abc import AsyncIterator

import pytest

from drivers.kubernetes import scene as scenes
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes.job_host import KubernetesJobHost
from hansa.drivers.kubernetes.job_logs import KubernetesLogs
from hansa.drivers.s3 import OpenStore
from hansa.storage import ObjectStore
from real.kubernetes import kubernetes_manager
from real.kubernetes.access import Access


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
