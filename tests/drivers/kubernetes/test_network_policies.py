"""Policies on a real API server: gathered from what there is, made before something runs, refused in words."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from lightkube.resources.core_v1 import Namespace
from lightkube.resources.networking_v1 import NetworkPolicy

from drivers.kubernetes import restricted
from hansa.drivers.kubernetes import NetworkPolicies, NetworkSources, network_manifest, network_rules
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.network_manifest import Destination, Rules
from hansa.drivers.kubernetes.network_policies import PoliciesRefused
from hansa.kernel.egress import Rule
from hansa.kernel.kubernetes import NetworkSettings
from real.kubernetes.access import Access

SECONDS = 30.0
NAMES = {"store.example.org": ["10.5.5.5"], "minio.data.svc": ["10.96.0.77"], "gone.example.org": []}


def resolve(host: str) -> list[str]:
    if not NAMES.get(host):
        raise OSError(f"nobody knows {host}")
    return NAMES[host]


def sources(**more: Any) -> NetworkSources:
    given = {
        "cluster": "lubeck",
        "network": NetworkSettings(),
        "private": "hansa",
        "outside": True,
        "allow": Rule.of(()),
        "store": "http://store.example.org:9000",
        "resolve": resolve,
        **more,
    }
    return NetworkSources(**given)


@pytest.fixture
async def api(kubernetes: Access) -> AsyncIterator[Connection]:
    opened = Connection.open(kubernetes.kubeconfig)
    yield opened
    await opened.close()


async def test_names_become_addresses_and_services_their_pods(api: Connection) -> None:
    allow = Rule.of(
        ("10.7.0.0/16", "10.8.8.8", "10.8.8.9:443", "minio.data.svc:9000", "gone.example.org:1", "127.0.0.1:1")
    )
    found = await network_rules(api, sources(allow=allow))
    assert set(found.allowed) == {
        Destination(ip_network("10.7.0.0/16")),
        Destination(ip_network("10.8.8.8")),
        Destination(ip_network("10.8.8.9"), port=443),
        Destination(ip_network("10.5.5.5"), port=9000),
        Destination(ip_network("10.96.0.77"), port=9000),
        Destination(namespace="data", port=9000),
    }


async def test_the_api_server_and_the_nodes_are_closed_and_the_manager_is_let_in(
    api: Connection, tmp_path: Path
) -> None:
    node = str(urlsplit(api.server).hostname)
    found = await network_rules(api, sources())
    assert ip_network(node) in found.closed
    assert found.managers == (ip_network(node.rpartition(".")[0] + ".1"),)
    assert (found.manager_namespace, found.name_servers) == ("", ())
    (tmp_path / "resolv.conf").write_text("search x\nnameserver 169.254.20.10\nnameserver 127.0.0.53\n")
    inside = await network_rules(api, sources(outside=False, resolver=tmp_path / "resolv.conf"))
    assert (inside.managers, inside.manager_namespace) == ((), "hansa")
    assert inside.name_servers == (ip_network("169.254.20.10"),)
    beside = await network_rules(api, sources(outside=False, store="http://10.96.0.3:8333", store_port=8333))
    assert Destination(namespace="hansa", port=8333) in beside.allowed  # whatever address leads to it


async def test_nothing_runs_where_no_policy_can_be_made(kubernetes: Access, tmp_path: Path, api: Connection) -> None:
    space = f"t{secrets.token_hex(4)}"
    async with kubernetes.client() as client:
        file = await restricted.account(client, kubernetes, tmp_path / "account", {space: ["pods"]})
    poor = Connection.open(file)

    async def gather() -> Rules:
        return await network_rules(poor, sources())

    with pytest.raises(PoliciesRefused, match="do not run in namespace") as refused:
        await NetworkPolicies(poor, "lubeck", gather).ensure(space, "aa")
    assert "kubernetes-rights.md" in refused.value.hint
    await poor.close()
    await api.delete(Namespace, space)


async def test_policies_follow_their_rules_and_what_runs_already_is_covered(
    api: Connection, kubernetes_namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hansa.drivers.kubernetes.network_policies._LOOK_EVERY", 0.05)
    allowed = [Destination(ip_network("10.5.5.5"), port=9000)]

    async def gather() -> Rules:
        return Rules(cluster="lubeck", egress="listed", allowed=tuple(allowed))

    kept = NetworkPolicies(api, "lubeck", gather)
    await kept.cover([(kubernetes_namespace, "aa"), (kubernetes_namespace, ""), ("not-there", "aa")])
    assert await there(api, kubernetes_namespace) == {network_manifest.name_of("lubeck", one) for one in ("", "aa")}
    working = asyncio.create_task(kept.work(), name="keep policies")
    try:
        allowed[0] = Destination(ip_network("10.6.6.6"), port=9000)
        async with asyncio.timeout(SECONDS):
            while "10.6.6.6/32" not in await text(api, kubernetes_namespace):
                await asyncio.sleep(0.05)
        await api.delete(NetworkPolicy, network_manifest.name_of("lubeck", "aa"), kubernetes_namespace)
        async with asyncio.timeout(SECONDS):
            while len(await there(api, kubernetes_namespace)) < 2:
                await asyncio.sleep(0.05)
    finally:
        working.cancel()
        await asyncio.wait({working})


async def there(api: Connection, namespace: str) -> set[str]:
    return {one.metadata.name for one in await api.list(NetworkPolicy, namespace)}


async def text(api: Connection, namespace: str) -> str:
    found = await api.get(NetworkPolicy, network_manifest.name_of("lubeck"), namespace)
    return str(found.to_dict()) if found is not None else ""
