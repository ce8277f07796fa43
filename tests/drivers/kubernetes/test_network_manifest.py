"""What do the policies around users' pods allow? The objects alone, read as the test cluster's enforcer reads them."""

import ipaddress
from ipaddress import ip_network
from typing import Any, cast

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace
from lightkube.resources.networking_v1 import NetworkPolicy

from hansa.drivers.kubernetes import labels, network_manifest
from hansa.drivers.kubernetes.network_manifest import Destination, Rules
from real.kubernetes import policy_rules
from real.kubernetes.test_policy_enforcer import pod

CLUSTER = "lubeck"
NODE, API, STORE = "192.168.7.2", "34.1.2.3", "10.9.9.9"


def rules(**more: Any) -> Rules:
    given = {
        "cluster": CLUSTER,
        "egress": "public",
        "manager_namespace": "hansa",
        "allowed": (Destination(ip_network(STORE), port=9000),),
        "closed": (ip_network(NODE), ip_network(API)),
        **more,
    }
    return Rules(**given)


def of(owner: str) -> dict[str, str]:
    return {**labels.of_cluster(CLUSTER), labels.OWNER: owner}


def egress(found: Rules, address: str, port: int = 443) -> bool:
    """Whether a user's pod may call that, as the enforcer reads the policies."""
    policies = [network_manifest.walls("x", found), network_manifest.among_own("x", CLUSTER, "aa")]
    way = policy_rules.walls([pod("a", "x", "10.0.0.1", **of("aa"))], [], policies)["10.0.0.1"].egress
    assert way is not None
    return any(reaches(match, address, port) for match in way)


def reaches(match: policy_rules.Match, address: str, port: int) -> bool:
    where = ipaddress.ip_address(address)
    inside = any(where in ip_network(one) for one in match.addresses)
    without = any(where in ip_network(one) for one in match.without)
    at = not match.ports or any(one.first <= port <= one.last for one in match.ports if one.protocol == "tcp")
    return inside and not without and at


SPECIAL = ["10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "168.63.129.16",
           "224.0.0.1", "0.0.0.0", "255.255.255.255", "198.18.0.1", "192.0.2.1", NODE, API]  # fmt: skip


@pytest.mark.parametrize("address", SPECIAL)
def test_what_is_not_public_is_not_called(address: str) -> None:
    assert not egress(rules(), address)


def test_public_addresses_and_the_store_are_called() -> None:
    assert egress(rules(), "1.2.3.4")
    assert egress(rules(), STORE, 9000)
    assert not egress(rules(), STORE, 9001)


def test_only_what_is_listed_is_called_where_that_is_chosen() -> None:
    listed = rules(egress="listed")
    assert not egress(listed, "1.2.3.4")
    assert egress(listed, STORE, 9000)


def test_open_is_not_open_to_the_cluster_itself() -> None:
    free = rules(egress="open")
    assert egress(free, "10.1.2.3")
    for address in (NODE, API, "169.254.169.254", "168.63.129.16", "127.0.0.1", "224.0.0.1"):
        assert not egress(free, address)


def test_a_network_that_is_allowed_does_not_open_the_nodes_but_an_address_that_is_named_does() -> None:
    wide = rules(allowed=(Destination(ip_network("192.168.0.0/16")),))
    assert egress(wide, "192.168.7.3")
    assert not egress(wide, NODE)
    assert egress(rules(allowed=(Destination(ip_network(NODE), port=30000),)), NODE, 30000)


def test_public_ipv6_is_called_and_no_other() -> None:
    blocks = [
        peer.ipBlock
        for rule in network_manifest.walls("x", rules()).spec.egress or ()  # type: ignore[union-attr]
        for peer in rule.to or ()
        if peer.ipBlock is not None and ":" in peer.ipBlock.cidr
    ]
    assert [one.cidr for one in blocks] == ["2000::/3"]
    assert {"2001:db8::/32", "2002::/16", "3fff::/20"} <= set(blocks[0].except_ or ())


def test_two_tenants_of_one_namespace_do_not_reach_each_other() -> None:
    everyone = [
        pod("a1", "x", "10.0.0.1", **of("aa")),
        pod("a2", "x", "10.0.0.2", **of("aa")),
        pod("b", "x", "10.0.0.3", **of("bb")),
        pod("manager", "hansa", "10.0.0.4", app="hansa"),
        pod("stranger", "x", "10.0.0.5", **{labels.OWNER: "aa"}),  # not of this cluster
    ]
    spaces = [space("x"), space("hansa")]
    policies = [
        network_manifest.walls("x", rules()),
        *(network_manifest.among_own("x", CLUSTER, one) for one in ("aa", "bb")),
    ]
    found = policy_rules.walls(everyone, spaces, policies)
    called_by = {
        name: {address for match in found[name].ingress or () for address in match.addresses}
        for name in ("10.0.0.1", "10.0.0.3")
    }
    assert called_by == {"10.0.0.1": {"10.0.0.1", "10.0.0.2", "10.0.0.4"}, "10.0.0.3": {"10.0.0.3", "10.0.0.4"}}


def space(name: str) -> Any:
    return Namespace(metadata=ObjectMeta(name=name, labels={"kubernetes.io/metadata.name": name}))


def test_a_policy_is_known_again_and_so_is_a_change_of_it() -> None:
    made = network_manifest.walls("x", rules())
    again = cast(NetworkPolicy, NetworkPolicy.from_dict(made.to_dict()))
    assert network_manifest.same(made, again)
    assert again.spec is not None and again.spec.podSelector is not None  # noqa: PT018 - for the types alone
    again.spec.podSelector.matchLabels = {**(again.spec.podSelector.matchLabels or {}), "more": "x"}
    assert not network_manifest.same(made, again)


def test_a_service_with_a_name_of_its_own_is_open_to_its_controller_or_to_all() -> None:
    target = pod("s", "x", "10.0.0.1", **{labels.EXPOSED: "tide", labels.CLUSTER: CLUSTER})
    controller = pod("c", "gate", "10.0.0.2")
    for callers, addresses in (((), ("0.0.0.0/0",)), (("gate",), ("10.0.0.2",)), (("9.9.9.0/24",), ("9.9.9.0/24",))):
        opened = network_manifest.opening("tide-svc", "x", CLUSTER, "tide", 8080, callers)
        way = policy_rules.walls([target, controller], [space("x"), space("gate")], [opened])["10.0.0.1"]
        assert way.egress is None
        assert way.ingress == (policy_rules.Match(addresses, (), (policy_rules.Port("tcp", 8080, 8080),)),)
