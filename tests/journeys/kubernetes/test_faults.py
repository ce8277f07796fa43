"""A manager on Kubernetes that dies, and one whose Kubernetes is hurt: no job is lost, none runs twice, every state has
its reason, and nothing is left behind."""

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any, cast

import boto3
import httpx
import pytest
from botocore.config import Config
from lightkube import AsyncClient
from lightkube.resources.apps_v1 import Deployment, ReplicaSet
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ConfigMap, Node, PersistentVolumeClaim, Pod, Secret, Service

from journeys.conftest import FreshName
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.kubernetes import kubernetes_manager as managers
from real.kubernetes.access import Access
from real.kubernetes.cluster import Component, KubernetesCluster
from real.manager import Manager, trusting

pytestmark = [pytest.mark.deep, pytest.mark.timeout(300)]

PATIENCE = 90.0
KINDS: tuple[Any, ...] = (Job, Pod, Secret, Deployment, ReplicaSet, Service, ConfigMap, PersistentVolumeClaim)
SETTINGS = {"kubernetes.pull_patience": 2}

# Every run leaves a file of its own: what ran twice has two. It tells from when to when it ran.
SCRIPT = """
id=$(cat /proc/sys/kernel/random/uuid); began=$(cut -d" " -f1 /proc/uptime)
sleep {seconds:g}
echo "$began $(cut -d" " -f1 /proc/uptime)" > "$TMP_OUTPUT_DIR/$(cat "$INPUT_FILE_PATH")_$id"
"""


@pytest.fixture(scope="module")
def own(kubernetes: Access, sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    """One that these tests may kill, on the cluster that all share."""
    managers.bring_images(kubernetes)
    managers.reach_pods(kubernetes)
    with managers.kubernetes_manager(kubernetes, {**trusting(sign_in_provider), **SETTINGS}) as running:
        yield running


@pytest.fixture(scope="module")
def other(_own_kubernetes: KubernetesCluster, sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    """One whose cluster these tests may hurt."""
    managers.bring_images(_own_kubernetes.access)
    managers.reach_pods(_own_kubernetes.access)
    with managers.kubernetes_manager(_own_kubernetes.access, {**trusting(sign_in_provider), **SETTINGS}) as running:
        yield running


@pytest.fixture
def alice(own: Manager, sign_in_provider: IdentityProvider) -> httpx.Client:
    return own.bearer(sign_in_provider.token("alice"))


@pytest.fixture
def bob(other: Manager, sign_in_provider: IdentityProvider) -> httpx.Client:
    return other.bearer(sign_in_provider.token("bob"))


def make(client: httpx.Client, name: str, script: str, **fields: Any) -> str:
    """Its namespace."""
    body = {"name": name, "image": "debian", "cpu": "0.1", "memory": "64Mi", "script": script, **fields}
    made = client.post("/system/services", json=body)
    assert made.status_code == 201, made.text
    return str(client.get(f"/system/services/{name}").json()["namespace"])


def output(name: str) -> list[dict[str, str]]:
    return [{"storage_provider": "minio.default", "path": f"{name}/out"}]


def submit(client: httpx.Client, service: str, body: str = "x") -> str:
    accepted = client.post(f"/job/{service}", content=body.encode())
    assert accepted.status_code == 201, accepted.text
    return accepted.headers["x-hansa-job"]


def story(client: httpx.Client, job: str) -> dict[str, Any]:
    told = client.get(f"/v1/jobs/{job}")
    assert told.status_code == 200, told.text
    return dict(told.json())


def ended(client: httpx.Client, job: str) -> dict[str, Any]:
    end = time.monotonic() + PATIENCE
    while (told := story(client, job))["status"] not in ("Succeeded", "Failed"):
        assert time.monotonic() < end, told
        time.sleep(0.2)
    return told


def reason_of(client: httpx.Client, job: str, part: str) -> str:
    return eventually(
        lambda: why if part in (why := story(client, job)["reason"]) else "", PATIENCE, f"a reason with {part!r}"
    )


def runs(client: httpx.Client, bucket: str) -> dict[str, list[tuple[float, float]]]:
    """By what a job was given: from when to when each of its runs that left a file went on."""
    told = client.get("/system/config").json()["minio_provider"]
    store = boto3.client(
        "s3",
        endpoint_url=told["endpoint"],
        aws_access_key_id=told["access_key"],
        aws_secret_access_key=told["secret_key"],
        region_name="us-east-1",
        config=Config(proxies={}),
    )
    with contextlib.closing(store):
        found: dict[str, list[tuple[float, float]]] = {}
        for one in store.list_objects_v2(Bucket=bucket, Prefix="out/").get("Contents", []):
            text = store.get_object(Bucket=bucket, Key=one["Key"])["Body"].read().split()
            given = one["Key"].removeprefix("out/").partition("_")[0]
            found.setdefault(given, []).append((float(text[0]), float(text[1])))
    return found


def each_ran_once(client: httpx.Client, name: str, jobs: dict[str, str]) -> None:
    for job in jobs.values():
        told = ended(client, job)
        assert (told["status"], told["reason"]) == ("Succeeded", ""), told
    assert {given: len(found) for given, found in runs(client, name).items()} == dict.fromkeys(jobs, 1)


async def objects(access: Access, cluster: str, service: str | None = None) -> list[str]:
    marks: dict[str, Any] = {"hansa/cluster": cluster} | ({"oscar_service": service} if service else {})
    async with access.client() as api:
        return [
            f"{kind.__name__} {one.metadata.name}"
            for kind in KINDS
            async for one in api.list(kind, namespace="*", labels=marks)
            if one.metadata.name != f"hansa-{cluster}-vault"  # the manager's own, with its keys
        ]


def gone(manager: Manager, access: Access, client: httpx.Client, name: str) -> None:
    """Deletes the service; nothing of this manager is in Kubernetes then."""
    assert client.delete(f"/system/services/{name}").status_code == 204
    nothing_left(manager, access)


def nothing_left(manager: Manager, access: Access) -> None:
    end = time.monotonic() + PATIENCE
    while left := asyncio.run(objects(access, str(manager.settings["cluster.id"]))):
        assert time.monotonic() < end, left
        time.sleep(1)


def pods_of(access: Access, job: str) -> list[Any]:
    async def look() -> list[Any]:
        async with access.client() as api:
            return [one async for one in api.list(Pod, namespace="*", labels={"hansa/job": job})]

    return asyncio.run(look())


def runs_now(access: Access, job: str) -> bool:
    states = [one.state for pod in pods_of(access, job) for one in (pod.status.containerStatuses or ())]
    return any(state.running is not None for state in states)


# The manager dies.


def test_killed_again_and_again_while_jobs_run(
    own: Manager, kubernetes: Access, alice: httpx.Client, fresh_name: FreshName
) -> None:
    name = fresh_name("burst")
    make(alice, name, SCRIPT.format(seconds=0.3), cpu="0.3", output=output(name))
    jobs: dict[str, str] = {}
    for number, moment in enumerate((0.02, 0.1, 0.4, 0.9, 1.8)):
        if number < 4:  # three more before each of the first deaths
            jobs |= {given: submit(alice, name, given) for given in (f"p{number}-{n}" for n in range(3))}
        time.sleep(moment)
        own.kill()
        own.start()
    each_ran_once(alice, name, jobs)
    assert len(jobs) == 12
    gone(own, kubernetes, alice, name)


FIELDS: dict[str, dict[str, Any]] = {
    "exposed": {
        "script": "cd /tmp; exec /usr/bin/python3 -m http.server 8080",
        "expose": {"api_port": [8080], "min_scale": 1},
    },
    "plain": {"script": "echo fine"},
}


@pytest.mark.parametrize("kind", FIELDS)
def test_killed_while_a_service_is_made(
    kind: str, own: Manager, kubernetes: Access, alice: httpx.Client, fresh_name: FreshName
) -> None:
    cluster = str(own.settings["cluster.id"])
    wanted = {"ConfigMap", "Secret"} | ({"Deployment", "Service", "ReplicaSet", "Pod"} if kind == "exposed" else set())
    made: list[str] = []
    for moment in (0.0, 0.02, 0.05, 0.1, 0.2):
        name = fresh_name("made")
        body = {**FIELDS[kind], "name": name, "image": "debian", "cpu": "0.1", "memory": "64Mi", "output": output(name)}
        asking = threading.Thread(target=ask, args=(alice, body), daemon=True)
        asking.start()
        time.sleep(moment)
        own.kill()
        asking.join(30)
        own.start()
        buckets = [one["bucket_name"] for one in alice.get("/system/buckets").json() or ()]
        if alice.get(f"/system/services/{name}").status_code == 200:
            made.append(name)
            assert name in buckets
            eventually(lambda: kinds_of(kubernetes, cluster, name) == wanted, PATIENCE, f"all of it ({moment} s)")  # noqa: B023
        else:
            assert name not in buckets
            eventually(lambda: not kinds_of(kubernetes, cluster, name), PATIENCE, f"nothing of it ({moment} s)")  # noqa: B023
    for name in made:
        if kind == "exposed":
            state = f"/system/services/{name}/deployment"
            eventually(lambda: alice.get(state).json()["state"] == "ready", PATIENCE, "ready")  # noqa: B023
        else:
            assert ended(alice, submit(alice, name))["status"] == "Succeeded"
        assert alice.delete(f"/system/services/{name}").status_code == 204
    nothing_left(own, kubernetes)


def kinds_of(access: Access, cluster: str, service: str) -> set[str]:
    return {one.split()[0] for one in asyncio.run(objects(access, cluster, service))}


def ask(client: httpx.Client, body: dict[str, Any]) -> None:
    with contextlib.suppress(httpx.TransportError):
        client.post("/system/services", json=body)


# What users are told.


def test_a_quota_that_somebody_else_used_up(
    own: Manager, kubernetes: Access, alice: httpx.Client, fresh_name: FreshName
) -> None:
    name = fresh_name("quota")
    space = make(alice, name, "echo fine")
    owner = alice.get(f"/system/services/{name}").json()["owner"]
    assert own.admin.put(f"/system/quotas/user/{owner}", json={"cpu": "1"}).status_code == 200
    asyncio.run(taken(kubernetes, space, "1100m"))
    job = submit(alice, name)
    why = reason_of(alice, job, "quota is used up")
    assert "used: requests.cpu=1100m" in why
    assert why in alice.get(f"/system/logs/{name}/{job}").text
    asyncio.run(freed(kubernetes, space))
    told = ended(alice, job)
    assert (told["status"], told["reason"]) == ("Succeeded", "")
    gone(own, kubernetes, alice, name)


async def taken(access: Access, namespace: str, cpu: str) -> None:
    """By a pod that no node takes: it counts all the same."""
    secure = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    asked = {"requests": {"cpu": cpu, "memory": "1Mi"}}
    box = {"name": "x", "image": "nobody", "securityContext": secure, "resources": asked}
    pod = {
        "metadata": {"name": "somebody-else", "namespace": namespace},
        "spec": {"containers": [box], "nodeSelector": {"hansa/nowhere": "yes"}},
    }
    async with access.client() as api:
        await api.create(cast(Pod, Pod.from_dict(pod)))


async def freed(access: Access, namespace: str) -> None:
    async with access.client() as api:
        await api.delete(Pod, "somebody-else", namespace=namespace, grace_period=0)


ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "image": ({"image": "nobody-has/this:1"}, "image nobody-has/this:1 cannot be used: "),
    "deadline": ({"script": "sleep 60", "annotations": {"hansa/time-limit": "1s"}}, "time limit of 1 s reached"),
    "memory": (
        {"script": "/usr/bin/python3 -c 'x = bytearray(300 * 2**20)'"},
        "out of memory: used more than 64Mi",
    ),
    "code": ({"script": "exit 3"}, "exit code 3"),
}


def test_what_is_said_of_jobs_that_fail(
    own: Manager, kubernetes: Access, alice: httpx.Client, fresh_name: FreshName
) -> None:
    jobs = {}
    for what, (fields, _) in ENDS.items():
        name = fresh_name(what)
        make(alice, name, **{"script": "true", **fields})
        jobs[what] = name, submit(alice, name)
    for what, (name, job) in jobs.items():
        told, expected = ended(alice, job), ENDS[what][1]
        assert told["status"] == "Failed"
        assert expected in told["reason"], told
        assert expected in alice.get(f"/system/logs/{name}/{job}").text
        assert alice.delete(f"/system/services/{name}").status_code == 204
    nothing_left(own, kubernetes)


# Kubernetes is hurt.


def test_no_node_takes_pods(
    other: Manager, breakable_kubernetes: KubernetesCluster, bob: httpx.Client, fresh_name: FreshName
) -> None:
    name, access = fresh_name("closed"), breakable_kubernetes.access
    make(bob, name, "echo fine")
    change_node(access, {"spec": {"taints": [{"key": "hansa/closed", "effect": "NoSchedule"}]}})
    try:
        job = submit(bob, name)
        assert "no node has room for it: 0/1 nodes are available" in reason_of(bob, job, "no node")
    finally:
        change_node(access, {"spec": {"taints": None}})
    told = ended(bob, job)
    assert (told["status"], told["reason"]) == ("Succeeded", "")
    gone(other, access, bob, name)


def test_etcd_hangs_now_and_then(
    other: Manager, breakable_kubernetes: KubernetesCluster, bob: httpx.Client, fresh_name: FreshName
) -> None:
    """Once for longer than we wait for an answer, so that nobody knows whether what was asked for is done."""
    name = fresh_name("slow")
    make(bob, name, SCRIPT.format(seconds=1), cpu="0.3", output=output(name))
    jobs: dict[str, str] = {}
    for number, seconds in enumerate((1, 12, 2, 3)):
        jobs |= {given: submit(bob, name, given) for given in (f"p{number}-{n}" for n in range(2))}
        breakable_kubernetes.freeze(Component.ETCD)
        time.sleep(seconds)
        breakable_kubernetes.thaw(Component.ETCD)
        time.sleep(1)
    each_ran_once(bob, name, jobs)
    gone(other, breakable_kubernetes.access, bob, name)


@pytest.mark.parametrize("seconds", [3, 25], ids=["it ends meanwhile", "it runs still"])
def test_a_node_is_lost_and_comes_back(
    seconds: int,
    other: Manager,
    breakable_kubernetes: KubernetesCluster,
    bob: httpx.Client,
    fresh_name: FreshName,
) -> None:
    """Its pods are evicted, as from a node that is silent for too long; they run on, for nobody there hears of it."""
    name, access = fresh_name("lost"), breakable_kubernetes.access
    make(bob, name, SCRIPT.format(seconds=seconds), output=output(name))
    job = submit(bob, name, "p")
    eventually(lambda: runs_now(access, job), PATIENCE, "running")
    breakable_kubernetes.kill(Component.KUBELET)
    change_node(access, {"spec": {"taints": [{"key": "hansa/lost", "effect": "NoExecute"}]}})
    try:
        eventually(lambda: any(pod.metadata.deletionTimestamp for pod in pods_of(access, job)), PATIENCE, "evicted")
        time.sleep(5)
        assert len(pods_of(access, job)) == 1
        assert story(bob, job)["status"] == "Running"
    finally:
        breakable_kubernetes.again(Component.KUBELET)
        change_node(access, {"spec": {"taints": None}})
    told = ended(bob, job)
    assert (told["status"], told["reason"]) == ("Succeeded", "")
    went = sorted(runs(bob, name)["p"])
    assert all(former[1] < later[0] for former, later in itertools.pairwise(went)), went
    gone(other, access, bob, name)


def change_node(access: Access, change: dict[str, Any]) -> None:
    async def do() -> None:
        api: AsyncClient
        async with access.client() as api:
            await api.patch(Node, access.node, change)

    asyncio.run(do())
