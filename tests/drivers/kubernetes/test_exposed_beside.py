"""A way past the manager, and somebody who scales: made where they are asked for, and gone with their service."""

import asyncio
from typing import Any

from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.autoscaling_v2 import HorizontalPodAutoscaler
from lightkube.resources.networking_v1 import Ingress

from contracts import orders
from drivers.kubernetes.custom_kinds import defined
from hansa.drivers.kubernetes.engine import Engine
from hansa.drivers.kubernetes.exposed_beside import HTTP_ROUTE, Routes
from hansa.drivers.kubernetes.exposed_host import KubernetesExposedHost
from hansa.resources import Needs, Share
from hansa.services import RunOrder
from hansa.services.service import Expose

SECONDS = 60.0


def exposed(visibility: str = "public", **expose: Any) -> RunOrder:
    return orders.order("serve", name="page", visibility=visibility, expose=Expose(api_port=(8080,), **expose))


async def until(engine: Engine, kind: Any, there: bool) -> None:
    async with asyncio.timeout(SECONDS):
        while bool(await engine.api.list(kind, engine.homes.placed(""))) != there:
            await asyncio.sleep(0.1)  # Kubernetes takes away what belonged to something that is gone, when it likes


async def test_an_ingress_for_what_anybody_may_call(engine: Engine) -> None:
    host = KubernetesExposedHost(engine, Routes(kind="ingress", domain="sea.example", ingress_class="nginx", tls=True))
    await host.apply(exposed(), running=True)
    (made,) = await engine.api.list(Ingress, engine.homes.placed(""))
    assert made.spec.ingressClassName == "nginx"
    assert made.spec.tls[0].hosts == ["page.sea.example"]
    (rule,) = made.spec.rules
    assert (rule.host, rule.http.paths[0].backend.service.name) == ("page.sea.example", "page-svc")
    assert rule.http.paths[0].backend.service.port.number == 8080
    await host.apply(exposed(set_auth=True), running=True)  # now the manager has to look who comes
    assert await engine.api.list(Ingress, engine.homes.placed("")) == []
    await host.apply(exposed(), running=True)
    for visibility in ("private", "restricted", ""):
        await host.apply(exposed(visibility), running=True)
        assert await engine.api.list(Ingress, engine.homes.placed("")) == []
    await host.apply(exposed(), running=True)
    await host.remove("page")
    await until(engine, Ingress, there=False)
    await host.close()


async def test_a_route_of_the_gateway_api(engine: Engine) -> None:
    """Its kind is not one of Kubernetes' own: where it is not known the service runs without."""
    host = KubernetesExposedHost(engine, Routes(kind="gateway", domain="sea.example", gateway="edge/harbour"))
    await host.apply(exposed(), running=True)
    await defined(engine.api, HTTP_ROUTE, "httproutes")
    await host.apply(exposed(), running=True)
    (made,) = await engine.api.list(HTTP_ROUTE, engine.homes.placed(""))
    assert made.spec["hostnames"] == ["page.sea.example"]
    assert made.spec["parentRefs"] == [{"name": "harbour", "namespace": "edge"}]
    assert made.spec["rules"] == [{"backendRefs": [{"name": "page-svc", "port": 8080}]}]
    await host.remove("page")
    await host.close()


async def test_it_is_scaled_between_its_bounds(engine: Engine) -> None:
    host = KubernetesExposedHost(engine)
    await host.apply(exposed(min_scale=2, max_scale=5, cpu_threshold=60), running=True)
    (made,) = await engine.api.list(HorizontalPodAutoscaler, engine.homes.placed(""))
    assert (made.spec.minReplicas, made.spec.maxReplicas) == (2, 5)
    assert made.spec.metrics[0].resource.target.averageUtilization == 60
    await host.apply(exposed(min_scale=2, max_scale=2), running=True)
    assert await engine.api.list(HorizontalPodAutoscaler, engine.homes.placed("")) == []
    await host.apply(exposed(min_scale=1, max_scale=3), running=True)
    await host.remove("page")
    await until(engine, HorizontalPodAutoscaler, there=False)
    await host.close()


async def test_it_is_scaled_no_further_than_its_owners_share(engine: Engine) -> None:
    asked = exposed(min_scale=2, max_scale=50)
    admission, each = engine.admission, asked.cpu
    admission.shares.share_of = lambda owner: Share(cpu=4 * each)
    host = KubernetesExposedHost(engine)
    await host.apply(asked, running=True)

    async def bounds(least: int, most: int) -> None:
        async with asyncio.timeout(SECONDS):
            while True:
                made = await engine.api.list(HorizontalPodAutoscaler, engine.homes.placed(""))
                if [(one.spec.minReplicas, one.spec.maxReplicas) for one in made] == [(least, most)]:
                    return
                await asyncio.sleep(0.1)

    await bounds(2, 4)
    owner = asked.service.owner
    assert admission.shares.of(owner).cpu == 2 * each
    assert admission.try_hold("job", Needs(each, 0, 0, owner), room=False)
    await bounds(2, 3)  # seen within some seconds
    admission.release("job")
    await bounds(2, 4)
    await host.apply(exposed(min_scale=9, max_scale=9), running=True)
    (made,) = await engine.api.list(Deployment, engine.homes.placed(""))
    assert made.spec.replicas == 4
    shown = host.deployment("page")
    assert shown is not None
    assert "quota" in shown.reason
    await host.remove("page")
    assert admission.shares.of(owner).cpu == 0
    await host.close()
