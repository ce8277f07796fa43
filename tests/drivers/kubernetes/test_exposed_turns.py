"""Exposed services are deleted and changed while their scales follow what may be: what was said last is what is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
from lightkube import AsyncClient
from lightkube.resources.apps_v1 import Deployment

from contracts import orders
from hansa.drivers.kubernetes import exposed_manifest
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.exposed_host import KubernetesExposedHost
from hansa.resources import Needs, Share
from hansa.services import RunOrder
from hansa.services.service import Expose
from real.kubernetes.cluster import KubernetesCluster

SECONDS = 60.0
SHORT = 1.0  # in which whoever does not wait is done
EACH, OWNER = 500, "alice"


class Stopped:
    """A Deployment on its way to the API server."""

    def __init__(self) -> None:
        self._there, self._goes, self._is_over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def reached(self) -> None:
        async with asyncio.timeout(SECONDS):
            await self._there.wait()

    def go_on(self) -> None:
        self._goes.set()

    async def over(self) -> None:
        async with asyncio.timeout(SECONDS):
            await self._is_over.wait()

    async def pass_by(self, going: Awaitable[Any]) -> Any:
        self._there.set()
        await self._goes.wait()
        try:
            return await going
        finally:
            self._is_over.set()


class Slow(Connection):
    """A way to the API server on which the next word of a service's Deployment can be stopped."""

    def __init__(self, client: AsyncClient) -> None:
        super().__init__(client)
        self._stops: dict[str, Stopped] = {}

    def stop(self, service: str) -> Stopped:
        made = self._stops[exposed_manifest.name_of(service)] = Stopped()
        return made

    async def apply(self, obj: Any) -> Any:
        is_deployment: bool = isinstance(obj, Deployment)
        stopped = self._stops.pop(obj.metadata.name, None) if is_deployment else None
        going = super().apply(obj)
        return await (going if stopped is None else stopped.pass_by(going))


@pytest.fixture
async def api(kubernetes_api: KubernetesCluster) -> AsyncIterator[Slow]:
    made = Connection.open(kubernetes_api.access.kubeconfig)
    yield Slow(made.client)
    await made.close()


@pytest.fixture
async def host(engine: Engine) -> AsyncIterator[KubernetesExposedHost]:
    made = KubernetesExposedHost(engine)
    yield made
    await made.close()


def exposed(name: str, least: int, most: int, script: str = "serve") -> RunOrder:
    expose = Expose(api_port=(8080,), min_scale=least, max_scale=most)
    return orders.order(script, name=name, owner=OWNER, cpu=EACH, expose=expose)


def allow(engine: Engine, instances: int) -> None:
    engine.admission.shares.share_of = lambda owner: Share(cpu=instances * EACH)


def look_again(engine: Engine) -> None:
    """Somebody's share may allow more now."""
    assert engine.admission.try_hold("job", Needs(0, 0, 0, OWNER), room=False)
    engine.admission.release("job")


async def deployments(engine: Engine) -> dict[str, Any]:
    found = await engine.api.list(Deployment, engine.homes.placed(""))
    return {one.metadata.name: one for one in found}


async def test_one_that_was_deleted_does_not_come_back(engine: Engine, api: Slow, host: KubernetesExposedHost) -> None:
    allow(engine, 2)
    await host.apply(exposed("first", 1, 5), running=True)
    await host.apply(exposed("second", 2, 2), running=True)  # one instance, for now
    allow(engine, 3)
    await host.apply(exposed("third", 1, 5), running=True)
    first, third = api.stop("first"), api.stop("third")
    allow(engine, 6)  # all of them may have more, and are told so one after the other
    look_again(engine)
    await first.reached()
    await host.remove("second")
    first.go_on()
    await third.reached()
    assert {*await deployments(engine)} == {exposed_manifest.name_of("first"), exposed_manifest.name_of("third")}
    assert engine.admission.shares.of(OWNER).cpu == 2 * EACH
    third.go_on()
    await third.over()


async def test_a_former_definition_does_not_come_back(engine: Engine, api: Slow, host: KubernetesExposedHost) -> None:
    allow(engine, 2)
    await host.apply(exposed("first", 1, 5), running=True)
    former = api.stop("first")
    allow(engine, 3)
    look_again(engine)
    await former.reached()
    newer = exposed("first", 1, 5, script="serve better")
    applying = asyncio.create_task(host.apply(newer, running=True))
    await asyncio.wait({applying}, timeout=SHORT)
    former.go_on()
    await former.over()
    await applying
    (made,) = (await deployments(engine)).values()
    used = [one.secret.secretName for one in made.spec.template.spec.volumes if one.secret is not None]
    assert used
    assert all(name.endswith(exposed_manifest.digest(newer, engine.shape)) for name in used)
