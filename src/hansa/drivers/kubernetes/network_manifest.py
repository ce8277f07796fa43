"""Which NetworkPolicies stand where users' pods run? Pure: from what is allowed to the objects.

One policy of each namespace closes all pods of this cluster there: the manager may call them, and they may call name
servers, the store, and what the operator's rule leaves open. One of each owner lets the owner's pods call each other. A
policy cannot say "the same owner", so that one is made for each. What is not allowed by any of them is refused, so pods
of two owners do not reach each other, in one namespace or in two.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import collapse_addresses, ip_network
from typing import Any, Literal, cast

from lightkube.resources.networking_v1 import NetworkPolicy

from hansa.drivers.kubernetes import labels
from hansa.kernel import ip_addresses
from hansa.kernel.ip_addresses import Network

_NAMED = "kubernetes.io/metadata.name"  # every namespace has it, with its own name
_KUBE_DNS = {
    "namespaceSelector": {"matchLabels": {_NAMED: "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}
_DNS_PORTS = (53, 5353, 8053)  # a cluster's name servers may listen elsewhere, behind their Service
_ALWAYS_CLOSED = ("127.0.0.0/8", "169.254.0.0/16", "168.63.129.16/32", "fe80::/10", "::1/128")


@dataclass(frozen=True, slots=True)
class Destination:
    """What may be called: a network, or the pods of a namespace; at one TCP port, or (0) at all of them."""

    network: Network | None = None
    namespace: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for all users' pods of one cluster."""

    cluster: str
    egress: Literal["public", "listed", "open"]
    managers: tuple[Network, ...] = ()
    """From where managers outside this Kubernetes call."""
    manager_namespace: str = ""
    """Where managers inside it run."""
    name_servers: tuple[Network, ...] = ()
    allowed: tuple[Destination, ...] = ()
    """The cluster's own store, and what the operator listed."""
    closed: tuple[Network, ...] = ()
    """The API server, the nodes and the like: no larger network that is allowed includes them."""


def name_of(cluster: str, owner: str = "") -> str:
    """Managers of several clusters may have pods in one namespace: each has policies of its own."""
    mark = hashlib.sha256(cluster.encode()).hexdigest()[:8]
    return f"hansa-{mark}-{owner}" if owner else f"hansa-{mark}"


def walls(namespace: str, rules: Rules) -> NetworkPolicy:
    """For all users' pods of this cluster in the namespace."""
    return _policy(
        name_of(rules.cluster),
        namespace,
        rules.cluster,
        labels.of_cluster(rules.cluster),
        ingress=[{"from": callers}] if (callers := _managers(rules)) else [],
        egress=[*_names(rules), *_destinations(rules), *_beyond(rules)],
    )


def among_own(namespace: str, cluster: str, owner: str) -> NetworkPolicy:
    """An owner's pods call each other: a job its owner's exposed service. `owner` is what the pods' label says."""
    own = {**labels.of_cluster(cluster), labels.OWNER: owner}
    peers = [{"podSelector": {"matchLabels": own}}]
    return _policy(name_of(cluster, owner), namespace, cluster, own, ingress=[{"from": peers}], egress=[{"to": peers}])


def opening(name: str, namespace: str, cluster: str, service: str, port: int, callers: Sequence[str]) -> NetworkPolicy:
    """For an exposed service that has a name of its own: its controller calls its pods. No `callers`: everybody."""
    peers = [_block(ip_network(one)) if _is_network(one) else _in_namespace(one) for one in callers]
    chosen = {labels.EXPOSED: service, labels.CLUSTER: labels.value(cluster)}
    rule = {**({"from": peers} if peers else {}), "ports": _ports("TCP", port)}
    return _policy(name, namespace, cluster, chosen, ingress=[rule])


def same(one: NetworkPolicy, other: NetworkPolicy) -> bool:
    """Whether they mean the same. All that the API server would fill in is written out, so words can be compared."""
    return bool(_meaning(one) == _meaning(other))


def _meaning(policy: Any) -> Any:
    spec = policy.spec.to_dict() if policy.spec is not None else {}
    marks = policy.metadata.labels or {}
    ours = {name: marks.get(name) for name in (labels.MANAGED_BY, labels.CLUSTER)}
    return {name: value for name, value in spec.items() if value}, ours


def _managers(rules: Rules) -> list[dict[str, Any]]:
    inside = [_in_namespace(rules.manager_namespace)] if rules.manager_namespace else []
    return [*inside, *(_block(one) for one in rules.managers)]


def _names(rules: Rules) -> list[dict[str, Any]]:
    pods = {
        "to": [_KUBE_DNS],
        "ports": [one for port in _DNS_PORTS for one in _ports("UDP", port) + _ports("TCP", port)],
    }
    servers = [_block(one) for one in rules.name_servers]
    others = [{"to": servers, "ports": _ports("UDP", 53) + _ports("TCP", 53)}] if servers else []
    return [pods, *others]


def _destinations(rules: Rules) -> list[dict[str, Any]]:
    """What goes to the same port is one rule."""
    by_port: dict[int, list[dict[str, Any]]] = {}
    for one in rules.allowed:
        peer = _block(one.network, _within(one.network, rules.closed)) if one.network else _in_namespace(one.namespace)
        peers = by_port.setdefault(one.port, [])
        if peer not in peers:
            peers.append(peer)
    return [
        {"to": peers, **({"ports": _ports("TCP", port)} if port else {})} for port, peers in sorted(by_port.items())
    ]


def _beyond(rules: Rules) -> list[dict[str, Any]]:
    if rules.egress == "listed":
        return []
    if rules.egress == "public":
        wholes = ip_addresses.public_networks()
    else:
        closed = [*ip_addresses.NEVER, *map(ip_network, _ALWAYS_CLOSED)]
        wholes = [(ip_network("0.0.0.0/0"), closed), (ip_network("::/0"), closed)]
    return [
        {"to": [_block(whole, [*_inside(whole, closed), *_within(whole, rules.closed)]) for whole, closed in wholes]}
    ]


def _inside(whole: Network, parts: Iterable[Network]) -> list[Network]:
    return [one for one in parts if one.version == whole.version and one.subnet_of(whole)]  # type: ignore[arg-type]


def _within(whole: Network, closed: Iterable[Network]) -> list[Network]:
    """An address that is named alone is meant, and so is a network that is named itself."""
    return [one for one in _inside(whole, closed) if one != whole]


def _block(network: Network, without: Sequence[Network] = ()) -> dict[str, Any]:
    parts = sorted(str(one) for one in collapse_addresses(without))  # type: ignore[type-var]
    return {"ipBlock": {"cidr": str(network), **({"except": parts} if parts else {})}}


def _in_namespace(name: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {_NAMED: name}}}


def _ports(protocol: str, port: int) -> list[dict[str, Any]]:
    return [{"port": port, "protocol": protocol}]


def _is_network(text: str) -> bool:
    return "/" in text


def _policy(
    name: str,
    namespace: str,
    cluster: str,
    chosen: dict[str, str],
    *,
    ingress: list[dict[str, Any]],
    egress: list[dict[str, Any]] | None = None,
) -> NetworkPolicy:
    made = NetworkPolicy.from_dict(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": name, "namespace": namespace, "labels": labels.of_cluster(cluster)},
            "spec": {
                "podSelector": {"matchLabels": chosen},
                "policyTypes": ["Ingress", *(["Egress"] if egress is not None else [])],
                "ingress": ingress,
                **({"egress": egress} if egress is not None else {}),
            },
        }
    )
    return cast(NetworkPolicy, made)
