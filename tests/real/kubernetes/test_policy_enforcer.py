"""Do pods of a test cluster keep to NetworkPolicies, as Kubernetes defines them? Tests of walls count on it."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from lightkube import AsyncClient
from lightkube.models.core_v1 import Container, ContainerPort, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod
from lightkube.resources.networking_v1 import NetworkPolicy
from lightkube.types import PatchType

from real.kubernetes import build, images, policy_enforcer, policy_rules
from real.kubernetes.access import Access
from real.kubernetes.fixtures import fresh_namespace
from real.kubernetes.policy_rules import Match, Port, Walls

SECONDS = 60.0
LISTEN = "httpd -p 8080; httpd -f -p 9090"
ANYBODY: dict[str, Any] = {"podSelector": {}}


def policy(name: str, namespace: str, **spec: Any) -> NetworkPolicy:
    about = {"name": name, "namespace": namespace}
    return cast(NetworkPolicy, NetworkPolicy.from_dict({"metadata": about, "spec": {**ANYBODY, **spec}}))


def pod(name: str, namespace: str, address: str = "", **labels: str) -> Any:
    listening = Container(
        name="main",
        image=images.BUSYBOX,
        command=["sh", "-c", LISTEN],
        ports=[ContainerPort(containerPort=8080, name="web")],
    )
    spec = PodSpec(containers=[listening], terminationGracePeriodSeconds=0)
    made = Pod(metadata=ObjectMeta(name=name, namespace=namespace, labels=dict(labels)), spec=spec)
    return Pod.from_dict({**made.to_dict(), "status": {"podIP": address, "phase": "Running"}}) if address else made


# The rules alone.

PODS = [pod("s", "x", "10.0.0.1", app="s"), pod("a", "x", "10.0.0.2", role="a"), pod("c", "y", "10.0.0.3", role="c")]
SPACES = [
    Namespace(metadata=ObjectMeta(name="x", labels={"team": "x"})),
    Namespace(metadata=ObjectMeta(name="y", labels={"team": "y"})),
]


def walls(*policies: NetworkPolicy) -> dict[str, Walls]:
    return policy_rules.walls(PODS, SPACES, policies)


def test_a_pod_that_no_policy_selects_is_open() -> None:
    found = walls(policy("p", "x", podSelector={"matchLabels": {"app": "s"}}, policyTypes=["Ingress"]))
    assert found["10.0.0.1"] == Walls((), None)
    assert found["10.0.0.2"] == found["10.0.0.3"] == Walls(None, None)


@pytest.mark.parametrize(
    ("peer", "addresses"),
    [
        ({"podSelector": {}}, ("10.0.0.1", "10.0.0.2")),
        ({"podSelector": {"matchLabels": {"role": "c"}}}, ()),
        ({"namespaceSelector": {}}, ("10.0.0.1", "10.0.0.2", "10.0.0.3")),
        ({"namespaceSelector": {"matchLabels": {"team": "y"}}}, ("10.0.0.3",)),
        ({"namespaceSelector": {}, "podSelector": {"matchLabels": {"role": "c"}}}, ("10.0.0.3",)),
        (
            {"podSelector": {"matchExpressions": [{"key": "role", "operator": "In", "values": ["a"]}]}},
            ("10.0.0.2",),
        ),
        ({"podSelector": {"matchExpressions": [{"key": "role", "operator": "DoesNotExist"}]}}, ("10.0.0.1",)),
        (
            {"podSelector": {"matchExpressions": [{"key": "role", "operator": "NotIn", "values": ["a"]}]}},
            ("10.0.0.1",),
        ),
    ],
)
def test_peers_are_who_the_selectors_select(peer: dict[str, Any], addresses: tuple[str, ...]) -> None:
    found = walls(policy("p", "x", ingress=[{"from": [peer]}], policyTypes=["Ingress"]))["10.0.0.1"]
    assert found.ingress == ((Match(addresses),) if addresses else ())


def test_ports_blocks_and_several_policies_add_up() -> None:
    block = {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}
    six = {"ipBlock": {"cidr": "2000::/3"}}
    named = [{"port": "web"}, {"port": 53, "protocol": "UDP"}, {"port": 30, "endPort": 40}]
    found = walls(
        policy("p", "x", egress=[{"to": [block, six]}], policyTypes=["Egress"]),
        policy("q", "x", egress=[{"to": [{"podSelector": {"matchLabels": {"app": "s"}}}], "ports": named}]),
        policy("r", "x", ingress=[{"ports": [{"port": "web"}]}], policyTypes=["Ingress"]),
    )["10.0.0.1"]
    assert found.egress == (
        Match(("0.0.0.0/0",), ("10.0.0.0/8",)),
        Match(("10.0.0.1",), (), (Port("udp", 53, 53), Port("tcp", 30, 40))),
        Match(("10.0.0.1",), (), (Port("tcp", 8080, 8080),)),
    )
    assert found.ingress == (Match(("0.0.0.0/0",), (), (Port("tcp", 8080, 8080),)),)


# In a real cluster.


@dataclass
class Ground:
    access: Access
    api: AsyncClient
    here: str
    there: str
    addresses: dict[str, str]

    async def reaches(self, who: str, address: str, port: int) -> bool:
        """As the pod itself tries."""
        space, _, name = who.partition("/")
        ask = ["nc", "-w", "3", address, str(port), "-e", "true"]
        return await asyncio.to_thread(kubectl, self.access, "-n", space, "exec", name, "--", *ask) == 0

    async def apply(self, *policies: NetworkPolicy) -> None:
        held = {}
        for one in policies:
            made = await self.api.apply(one, field_manager="test", force=True)
            assert made.metadata is not None
            held[f"{made.metadata.namespace}/{made.metadata.name}"] = str(made.metadata.resourceVersion)
        await policy_enforcer.caught_up(self.access.kubeconfig.parents[1], held)


def kubectl(access: Access, *words: str) -> int:
    programs = build.found()
    assert programs is not None
    whole = [str(programs / "kubectl"), f"--kubeconfig={access.kubeconfig}", *words]
    return subprocess.run(whole, capture_output=True, timeout=SECONDS, check=False).returncode


@pytest.fixture
async def ground(kubernetes: Access, kubernetes_namespace: str) -> AsyncIterator[Ground]:
    async with fresh_namespace(kubernetes) as there, kubernetes.client() as api, asyncio.timeout(SECONDS):
        here = kubernetes_namespace
        wanted = [
            pod("s", here, app="s"),
            pod("a", here, role="a"),
            pod("b", here, role="b"),
            pod("c", there, role="c"),
        ]
        for one in wanted:
            await api.create(one)
        addresses = {}
        for one in wanted:
            seen = await api.wait(Pod, one.metadata.name, for_conditions=["Ready"], namespace=one.metadata.namespace)
            assert seen.status is not None
            addresses[f"{one.metadata.namespace}/{one.metadata.name}"] = str(seen.status.podIP)
        await policy_enforcer.caught_up(kubernetes.kubeconfig.parents[1], pods=addresses)
        yield Ground(kubernetes, api, here, there, addresses)


async def test_pods_keep_to_policies(ground: Ground) -> None:
    a, b, c = f"{ground.here}/a", f"{ground.here}/b", f"{ground.there}/c"
    target, node = ground.addresses[f"{ground.here}/s"], str(urlsplit(ground.access.server).hostname)

    async def seen() -> dict[str, bool]:
        asked = {f"{who[-1]}{port}": ground.reaches(who, target, port) for who in (a, b, c) for port in (8080, 9090)}
        return dict(zip(asked, await asyncio.gather(*asked.values()), strict=True))

    assert set((await seen()).values()) == {True}
    assert await ground.reaches(a, node, 6443)

    of_a = {"podSelector": {"matchLabels": {"role": "a"}}}
    chosen = {"podSelector": {"matchLabels": {"app": "s"}}, "policyTypes": ["Ingress"]}
    await ground.apply(policy("in", ground.here, **chosen, ingress=[{"from": [of_a], "ports": [{"port": "web"}]}]))
    assert {name for name, open_ in (await seen()).items() if open_} == {"a8080"}

    of_there = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ground.there}}}
    await ground.apply(policy("in2", ground.here, **chosen, ingress=[{"from": [of_there]}]))
    assert {name for name, open_ in (await seen()).items() if open_} == {"a8080", "c8080", "c9090"}

    block = {"ipBlock": {"cidr": "0.0.0.0/0", "except": [f"{node}/32"]}}
    await ground.apply(policy("out", ground.here, **of_a, policyTypes=["Egress"], egress=[{"to": [block]}]))
    assert not await ground.reaches(a, node, 6443)
    assert not await ground.reaches(a, "10.96.0.1", 443)  # the same by the Service's address
    assert await ground.reaches(b, node, 6443)
    assert await ground.reaches(a, target, 8080)

    await ground.apply(policy("out", ground.here, **of_a, policyTypes=["Egress"], egress=[]))
    assert not await ground.reaches(a, target, 8080)
    changed = {"metadata": {"labels": {"role": "free"}}}
    await ground.api.patch(Pod, "a", changed, namespace=ground.here, patch_type=PatchType.MERGE)
    async with asyncio.timeout(SECONDS):
        while not await ground.reaches(a, node, 6443):
            await asyncio.sleep(0.1)
