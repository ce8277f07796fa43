"""A manager on Kubernetes that is killed at any moment of a create, an update or a delete: what it has and what
Kubernetes keeps are the same afterwards, and what was deleted stays so."""

import asyncio
import secrets
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from lightkube.resources.core_v1 import ConfigMap, Secret

from journeys.conftest import FreshName
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.kubernetes import kubernetes_manager as managers
from real.kubernetes.access import Access
from real.manager import Manager, trusting

pytestmark = pytest.mark.deep

MOMENTS = (0.01, 0.05, 0.1, 0.2, 0.35, 0.6)


@pytest.fixture(scope="module")
def own(kubernetes: Access, sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    """One that these tests may hurt."""
    managers.bring_images(kubernetes)
    managers.reach_pods(kubernetes)
    with managers.kubernetes_manager(kubernetes, trusting(sign_in_provider)) as running:
        yield running


async def kept(access: Access, cluster: str) -> dict[str, Any]:
    """The scripts that Kubernetes keeps, and how many Secrets belong to each service."""
    marks: dict[str, Any] = {"hansa/cluster": cluster, "hansa/keeps": "service"}
    async with access.client() as api:
        found: list[Any] = [one async for one in api.list(ConfigMap, namespace="*", labels=marks)]
        others: list[Any] = [one async for one in api.list(Secret, namespace="*", labels=marks)]
    maps = {one.metadata.name: one.data["script.sh"] for one in found}
    owners = [one.metadata.labels["oscar_service"] for one in others]
    return {name: (maps.get(name), owners.count(name)) for name in {*maps, *owners}}


def agree(own: Manager, access: Access, alice: httpx.Client) -> bool:
    listed = {one["name"]: (one["script"], 2) for one in alice.get("/system/services").json()}
    return asyncio.run(kept(access, str(own.settings["cluster.id"]))) == listed


@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE"])
def test_killed(
    verb: str, own: Manager, kubernetes: Access, sign_in_provider: IdentityProvider, fresh_name: FreshName
) -> None:
    alice = own.bearer(sign_in_provider.token("alice"))
    for moment in MOMENTS:
        name = fresh_name("kill")
        body = {
            "name": name,
            "image": "debian",
            "script": "true",
            "environment": {"secrets": {"A": secrets.token_hex(4)}},
            "input": [{"storage_provider": "minio.default", "path": f"{name}/in"}],
        }
        if verb != "POST":
            assert alice.post("/system/services", json=body).status_code == 201
        given: dict[str, Any] = {
            "POST": ("/system/services", {"json": body}),
            "PUT": ("/system/services", {"json": {**body, "script": "echo changed"}}),
            "DELETE": (f"/system/services/{name}", {}),
        }
        path, more = given[verb]
        answers: list[int] = []
        asking = threading.Thread(target=ask, args=(alice, verb, path, more, answers), daemon=True)
        asking.start()
        time.sleep(moment)
        own.kill()
        asking.join(30)
        own.start()
        eventually(lambda: agree(own, kubernetes, alice), what=f"the same in both, killed after {moment} s")
        found = alice.get(f"/system/services/{name}").status_code
        if answers and verb == "DELETE":
            assert found == 404
        elif answers:
            assert found == 200


def ask(client: httpx.Client, verb: str, path: str, more: dict[str, Any], answers: list[int]) -> None:
    try:
        answer = client.request(verb, path, **more)
    except httpx.TransportError:
        return
    if answer.status_code < 300:
        answers.append(answer.status_code)
