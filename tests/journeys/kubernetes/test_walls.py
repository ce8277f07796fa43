"""A tenant's pod tries what it can reach: another tenant's pods, the manager's machine, the API server, the kubelet, a
cloud's metadata, private addresses. Where users have namespaces of their own, and where they share one.

A pod without walls in the same cluster reaches all of it, which shows that the targets answer.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import pytest
from lightkube import AsyncClient
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod, Service
from lightkube.resources.discovery_v1 import EndpointSlice
from lightkube.resources.networking_v1 import NetworkPolicy
from lightkube.types import PatchType

from journeys.conftest import Person, signing_in
from journeys.exposing import definition, ready, script
from journeys.waiting import run_job
from real.identity_provider import IdentityProvider
from real.kubernetes import far_address, policy_enforcer
from real.kubernetes import kubernetes_manager as managers
from real.kubernetes.access import Access
from real.kubernetes.fixtures import fresh_namespace, require_names
from real.kubernetes.test_cluster import pod as plain_pod
from real.kubernetes.test_cluster import run_job as run_plain_job
from real.listener import Listener, listener
from real.manager import Manager, trusting

pytestmark = pytest.mark.timeout(300)
METADATA, PUBLIC = "169.254.169.254", "1.2.3.4"
PROGRAM = """\
import json, socket, sys
found = {}
for name, (host, port) in json.load(sys.stdin).items():
    try:
        socket.create_connection((host, port), 10).close()
        found[name] = True
    except OSError as error:
        found[name] = False
print("found", json.dumps(found))
"""
PROBE = f"python3 -c '{PROGRAM}' < $INPUT_FILE_PATH"
STAND = 'import socket; socket.create_server(("0.0.0.0", 9000)).accept()'
Targets = Mapping[str, tuple[str, int]]
HOLES: tuple[dict[str, Any], ...] = (
    {"spec": {"ingress": [{}], "egress": [{}]}},
    {"spec": {"podSelector": {"matchLabels": {"nobody": "has-it"}}}},
    {"spec": {"policyTypes": ["Ingress"], "egress": None}},
    {"metadata": {"labels": {"hansa/cluster": "another"}}},
)


@dataclass
class Ground:
    access: Access
    manager: Manager
    person: Person
    cluster: str
    work: str  # the namespace that all share; "" if everybody has one

    @property
    def folder(self) -> Any:
        return self.access.kubeconfig.parents[1]


@pytest.fixture(scope="module", params=["own namespaces", "one for all"])
def ground(request: pytest.FixtureRequest, kubernetes: Access, sign_in_provider: IdentityProvider) -> Iterator[Ground]:
    require_names(kubernetes)
    managers.bring_images(kubernetes)
    managers.reach_pods(kubernetes)
    settings = {**managers.settings_for(kubernetes), **trusting(sign_in_provider)}
    work = f"work-{secrets.token_hex(3)}" if request.param == "one for all" else ""
    with contextlib.ExitStack() as undo:
        if work:
            asyncio.run(make_namespace(kubernetes, work))
            undo.callback(lambda: asyncio.run(remove_namespace(kubernetes, work)))
            asyncio.run(make_namespace(kubernetes, settings["kubernetes.namespace"]))
            undo.callback(lambda: asyncio.run(remove_namespace(kubernetes, settings["kubernetes.namespace"])))
            settings |= {"kubernetes.namespaces": [work], "jobs.cpu": "4", "jobs.memory": "4Gi"}
        manager = undo.enter_context(managers.kubernetes_manager(kubernetes, settings))
        person = signing_in(manager, sign_in_provider)
        yield Ground(kubernetes, manager, person, settings["cluster.id"], work)


async def make_namespace(access: Access, name: str) -> None:
    async with access.client() as api:
        await api.create(Namespace(metadata=ObjectMeta(name=name)))


async def remove_namespace(access: Access, name: str) -> None:
    async with access.client() as api:
        await api.delete(Namespace, name)


@pytest.fixture(scope="module")
def neighbour(ground: Ground) -> Iterator[Listener]:
    """A private address beyond the cluster: the machine on which the manager runs."""
    with listener(host=managers.near_end(ground.access)) as heard:
        yield heard


def create(client: httpx.Client, name: str, text: str, **fields: Any) -> str:
    made = {"name": name, "image": "debian", "memory": "64Mi", "cpu": "0.05", "script": text, **fields}
    answer = client.post("/system/services", json=made)
    assert answer.status_code == 201, answer.text
    return name


@pytest.fixture(scope="module")
def serving(ground: Ground) -> Iterator[dict[str, str]]:
    """Exposed services of both, by their owners; bob's is private."""
    names = {}
    for who, seen in (("alice", "public"), ("bob", "private")):
        fields = {**definition(visibility=seen), "cpu": "0.05", "memory": "64Mi"}
        names[who] = create(ground.person(who), f"serve-{who}", script(8080), **fields)
    for who, name in names.items():
        ready(ground.person(who), name)
    yield names
    for name in names.values():
        ground.manager.admin.delete(f"/system/services/{name}")


@pytest.fixture(scope="module")
def probe(ground: Ground) -> Iterator[str]:
    name = create(ground.person("alice"), "probe", PROBE)
    yield name
    ground.manager.admin.delete(f"/system/services/{name}")


async def seen_pod(api: AsyncClient, service: str) -> Any:
    """The one that runs, with its address."""
    async with asyncio.timeout(60):
        while True:
            async for one in api.list(Pod, namespace="*", labels={"oscar_service": service}):
                if one.status and one.status.podIP and one.status.phase == "Running":
                    return one
            await asyncio.sleep(0.1)


def told(log: str) -> dict[str, bool]:
    (line,) = [line for line in log.splitlines() if line.startswith("found ")]
    return dict(json.loads(line.removeprefix("found ")))


async def try_as_alice(ground: Ground, probe: str, targets: Targets) -> dict[str, bool]:
    body = json.dumps(targets).encode()
    return told(await asyncio.to_thread(run_job, ground.person("alice"), probe, body))


async def try_without_walls(ground: Ground, targets: Targets) -> dict[str, bool]:
    async with fresh_namespace(ground.access) as namespace:
        text = f"python3 -c '{PROGRAM}' <<'END'\n{json.dumps(targets)}\nEND\n"
        how, said = await run_plain_job(ground.access, namespace, plain_pod("sh", "-c", text, image=managers.DEBIAN))
    assert how.startswith("Complete"), said
    return told(said)


@contextlib.asynccontextmanager
async def bobs_job(ground: Ground, api: AsyncClient) -> AsyncIterator[tuple[str, int]]:
    """It listens at a port, for as long as it is needed."""
    bob = ground.person("bob")
    name = create(bob, "stand", f"python3 -c '{STAND}'")
    try:
        assert bob.post(f"/job/{name}").status_code == 201
        yield str((await seen_pod(api, name)).status.podIP), 9000
    finally:
        ground.manager.admin.delete(f"/system/services/{name}")


async def test_a_pod_reaches_its_own_and_what_is_public_and_nothing_else(
    ground: Ground, serving: dict[str, str], probe: str, neighbour: Listener
) -> None:
    node, beside = managers.node_address(ground.access), urlsplit(neighbour.url)
    store = urlsplit(ground.person("alice").get("/system/config").json()["minio_provider"]["endpoint"])
    async with contextlib.AsyncExitStack() as undo:
        api = await undo.enter_async_context(ground.access.client())
        for address in (METADATA, PUBLIC):
            undo.enter_context(far_address.listening(ground.access, address))
        pods = {who: await seen_pod(api, name) for who, name in serving.items()}
        named = {who: f"{name}-svc.{pods[who].metadata.namespace}.svc.cluster.local" for who, name in serving.items()}
        refused: Targets = {
            "the manager's machine": (str(beside.hostname), beside.port or 0),
            "API server": (node, 6443),
            "API server by its Service": ("10.96.0.1", 443),
            "kubelet": (node, 10250),
            "metadata": (METADATA, far_address.PORT),
        }
        guarded: Targets = {
            "another's job": await undo.enter_async_context(bobs_job(ground, api)),
            "another's service": (pods["bob"].status.podIP, 8080),
            "another's service by name": (named["bob"], 8080),
        }
        open_: Targets = {
            "own service": (pods["alice"].status.podIP, 8080),
            "own service by name": (named["alice"], 8080),
            "own store": (str(store.hostname), store.port or 80),
            "a public address": (PUBLIC, far_address.PORT),
        }
        inside = {**guarded, "own service": open_["own service"]}
        outside = await try_without_walls(ground, {**refused, **inside})
        found = await try_as_alice(ground, probe, {**refused, **guarded, **open_})
    # All targets answer; but walls are around a tenant's pod, and nobody reaches it from elsewhere either.
    assert outside == {**dict.fromkeys(refused, True), **dict.fromkeys(inside, False)}
    assert {name for name, reached in found.items() if reached} == set(open_)


@pytest.mark.parametrize("ground", ["one for all"], indirect=True, scope="module")
async def test_a_warm_worker_is_behind_the_same_walls(ground: Ground, serving: dict[str, str], probe: str) -> None:
    async with ground.access.client() as api:
        target = (await seen_pod(api, serving["bob"])).status.podIP
    asked = json.dumps({"it": (target, 8080), "API": (managers.node_address(ground.access), 6443)})
    alice = ground.person("alice")
    answer = await asyncio.to_thread(alice.post, f"/run/{probe}", content=asked, timeout=120)
    assert told(answer.text) == {"it": False, "API": False}


@pytest.mark.parametrize("ground", ["own namespaces"], indirect=True, scope="module")
@pytest.mark.parametrize("kind", ["s3", "webdav"])
async def test_a_store_by_a_name_that_leads_to_a_private_address_is_not_called(
    ground: Ground, neighbour: Listener, kind: str
) -> None:
    """The program that carries a job's files is in the pod, and dials by itself."""
    alice, beside = ground.person("alice"), urlsplit(neighbour.url)
    async with fresh_namespace(ground.access) as namespace, ground.access.client() as api:
        await lead(api, namespace, str(beside.hostname), beside.port or 0)
        url = f"http://trap.{namespace}.svc.cluster.local:{beside.port}"
        keys = {"access_key": "AK", "secret_key": "SK", "region": "us-east-1"}
        given = {"hostname": url, "login": "a", "password": "b"} if kind == "webdav" else {"endpoint": url, **keys}
        name = create(
            alice,
            f"lure-{kind}",
            "echo secret > $TMP_OUTPUT_DIR/x",
            output=[{"storage_provider": f"{kind}.evil", "path": "bucket/out"}],
            storage_providers={kind: {"evil": given}},
        )
        assert (await asyncio.to_thread(alice.post, f"/job/{name}")).status_code == 201
        await tried(api, name, "upload bucket/out")
        await asyncio.to_thread(alice.delete, f"/system/services/{name}")
    assert neighbour.visits == []


async def tried(api: AsyncClient, service: str, what: str) -> None:
    """The program that carries files says in the job's pod that it tried in vain; so often that a name or a way to it
    which came late is no reason."""
    async with asyncio.timeout(60):
        about = (await seen_pod(api, service)).metadata
        while True:
            lines = api.log(about.name, namespace=about.namespace, container="stage-out")
            if len([line async for line in lines if what in line and "trying again" in line]) >= 4:
                return
            await asyncio.sleep(0.2)


async def lead(api: AsyncClient, namespace: str, address: str, port: int) -> None:
    """A Service whose name leads to that address."""
    about = {"name": "trap", "namespace": namespace}
    await api.create(cast(Service, Service.from_dict({"metadata": about, "spec": {"ports": [{"port": port}]}})))
    marks = {**about, "labels": {"kubernetes.io/service-name": "trap"}}
    slices = {
        "metadata": marks,
        "addressType": "IPv4",
        "ports": [{"port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
    await api.create(cast(EndpointSlice, EndpointSlice.from_dict(slices)))


async def test_walls_that_somebody_takes_down_or_opens_stand_again(
    ground: Ground, serving: dict[str, str], probe: str
) -> None:
    async with ground.access.client() as api, asyncio.timeout(90):
        target = await seen_pod(api, serving["bob"])
        namespace = str(target.metadata.namespace)
        before = await policies(api, ground, namespace)
        assert len(before) >= 2
        for name in before:
            await api.delete(NetworkPolicy, name, namespace=namespace)
        await until_as(before, api, ground, namespace)
        for hole in HOLES:
            for name in before:
                await api.patch(NetworkPolicy, name, hole, namespace=namespace, patch_type=PatchType.MERGE)
            await until_as(before, api, ground, namespace)
        held = {f"{namespace}/{name}": version for name, version in (await versions(api, ground, namespace)).items()}
        await policy_enforcer.caught_up(ground.folder, held)
    found = await try_as_alice(ground, probe, {"it": (target.status.podIP, 8080)})
    assert found == {"it": False}


async def listed(api: AsyncClient, ground: Ground, namespace: str) -> list[Any]:
    found = api.list(NetworkPolicy, namespace=namespace, labels={"hansa/cluster": ground.cluster})
    return [one async for one in found]


async def policies(api: AsyncClient, ground: Ground, namespace: str) -> dict[str, Any]:
    return {str(one.metadata.name): one.spec.to_dict() for one in await listed(api, ground, namespace)}


async def versions(api: AsyncClient, ground: Ground, namespace: str) -> dict[str, str]:
    return {str(one.metadata.name): str(one.metadata.resourceVersion) for one in await listed(api, ground, namespace)}


async def until_as(wanted: dict[str, Any], api: AsyncClient, ground: Ground, namespace: str) -> None:
    while await policies(api, ground, namespace) != wanted:
        await asyncio.sleep(0.1)
