"""A manager on Kubernetes that lost everything it had on its disk finds its services again, and they run."""

import asyncio
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from lightkube.resources.core_v1 import ConfigMap, Namespace, ResourceQuota

from journeys.conftest import FreshName
from journeys.waiting import ended_jobs, eventually
from real.identity_provider import IdentityProvider
from real.kubernetes import kubernetes_manager as managers
from real.kubernetes.access import Access
from real.manager import Manager, trusting

SCRIPT = 'echo "it is $PASSWORD"'


@pytest.fixture
def own(kubernetes: Access, sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    """One that this test may hurt."""
    managers.bring_images(kubernetes)
    managers.reach_pods(kubernetes)
    with managers.kubernetes_manager(kubernetes, trusting(sign_in_provider)) as running:
        yield running


async def shown(access: Access, kind: Any, name: str, namespace: str | None) -> Any:
    async with access.client() as api:
        return await api.get(kind, name, namespace=namespace) if namespace else await api.get(kind, name)


async def changed(access: Access, name: str, namespace: str) -> None:
    async with access.client() as api:
        await api.patch(ConfigMap, name, {"data": {"script.sh": "by hand"}}, namespace=namespace)


def test_the_disk_is_lost(
    own: Manager, kubernetes: Access, sign_in_provider: IdentityProvider, fresh_name: FreshName
) -> None:
    name = fresh_name("kept")
    alice = own.bearer(sign_in_provider.token("alice"))
    secret = {"secrets": {"PASSWORD": "swordfish"}}
    made = alice.post(
        "/system/services", json={"name": name, "image": "debian", "script": SCRIPT, "environment": secret}
    )
    assert made.status_code == 201, made.text
    before = alice.get(f"/system/services/{name}").json()
    space = before["namespace"]
    assert asyncio.run(shown(kubernetes, ConfigMap, name, space)).data["script.sh"] == SCRIPT
    quota = [
        own.admin.put(f"/system/quotas/user/{before['owner']}", json={"cpu": "3"}).status_code,
        asyncio.run(quota_of(kubernetes, space)),
    ]
    assert quota == [200, "3300m"]
    own.kill()
    shutil.rmtree(own.data)
    own.start()
    assert alice.get(f"/system/services/{name}").json() == before
    asyncio.run(changed(kubernetes, name, space))
    eventually(lambda: asyncio.run(shown(kubernetes, ConfigMap, name, space)).data["script.sh"] == SCRIPT)
    job = alice.post(f"/job/{name}", content=b"{}")
    assert job.status_code == 201, job.text
    (ended,) = ended_jobs(alice, name, 1)
    assert "it is swordfish" in alice.get(f"/system/logs/{name}/{ended}").text
    assert alice.delete(f"/system/services/{name}").status_code == 204
    own.restart()
    assert alice.get(f"/system/services/{name}").status_code == 404
    owner = asyncio.run(shown(kubernetes, Namespace, space, None)).metadata.annotations
    assert owner["oscar.grycap.upv.es/owner"] == before["owner"]


async def quota_of(access: Access, namespace: str) -> str:
    async with access.client() as api:
        (found,) = [one async for one in api.list(ResourceQuota, namespace=namespace)]
        return str(found.spec and (found.spec.hard or {})["requests.cpu"])
