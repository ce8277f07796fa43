"""Do long-lived services run in Kubernetes as they do on one machine? The contract, then what only Kubernetes risks."""

import asyncio

import pytest
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Secret, Service

from contracts import exposed_host as contract
from contracts.exposed_host import ExposedHostContract, ask, server, until_state
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes.exposed_host import KubernetesExposedHost

pytest_plugins = ("real.object_store",)
pytestmark = pytest.mark.deep


@pytest.fixture(autouse=True)
def in_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody outside reaches a pod's loopback, and a container that crashed again is started only after ten seconds."""
    monkeypatch.setattr(contract, "ADDRESS", "0.0.0.0")
    monkeypatch.setattr(contract, "PATIENCE", 60.0)


@pytest.fixture
def host(scene: Scene) -> KubernetesExposedHost:
    return scene.exposed


class TestKubernetesExposedHost(ExposedHostContract):
    pass


async def left(scene: Scene) -> list[str]:
    """Names of what we made in the namespace."""
    marks = {"app.kubernetes.io/managed-by": "hansa"}
    found = [await scene.api.list(kind, scene.namespace, marks) for kind in (Deployment, Service, Secret)]
    return sorted(one.metadata.name for some in found for one in some)


async def test_old_definitions_do_not_pile_up_and_removal_leaves_nothing(scene: Scene) -> None:
    for answer in ("one", "two", "three", "four"):
        await scene.exposed.apply(server(answer), running=True)
    await until_state(scene.exposed, "ready")
    async with asyncio.timeout(60):
        while await ask(scene.exposed) != b"four":  # whichever was ready first serves until the newest is
            await asyncio.sleep(0.2)
    named = await left(scene)
    assert named[-1] == "tool-svc"
    assert "tool-dlp" in named
    assert len(named) == 2 + 2 * 2
    await scene.exposed.remove("tool")
    async with asyncio.timeout(60):
        while await left(scene):
            await asyncio.sleep(0.2)


async def test_another_manager_finds_it_as_it_is(scene: Scene) -> None:
    """After a restart the same order is applied again: nothing of what runs changes."""
    await scene.exposed.apply(server("hello"), running=True)
    await until_state(scene.exposed, "ready")
    (before,) = scene.board.pods_of("tool")
    again = KubernetesExposedHost(scene.engine)
    try:
        await again.apply(server("hello"), running=True)
        await until_state(again, "ready")
        assert await ask(again) == b"hello"
    finally:
        await again.close()
    (after,) = scene.board.pods_of("tool")
    assert after.metadata.uid == before.metadata.uid
