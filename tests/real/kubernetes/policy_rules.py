"""What do NetworkPolicies say about each pod? Pure: from the objects of a cluster to walls, and to nftables' words.

As Kubernetes defines them (`networking.k8s.io/v1`): a pod that no policy selects for a direction is open in it; one
that is selected may be reached, or may reach, what any of its policies allows and nothing else. A node reaches its own
pods always, a pod reaches itself always, and answers pass. Pods have IPv4 here, so blocks of IPv6 match nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from typing import Any

TABLE = "hansa-policies"
_ANY = "0.0.0.0/0"
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Port:
    """`protocol` is nftables' word; `first` 0 stands for all of them."""

    protocol: str
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class Match:
    """One thing that is allowed: these addresses, without some, at these ports (none given: at all)."""

    addresses: tuple[str, ...]
    without: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()


Way = tuple[Match, ...] | None  # None: no policy speaks of this direction


@dataclass(frozen=True, slots=True)
class Walls:
    ingress: Way
    egress: Way


def walls(pods: Iterable[Any], namespaces: Iterable[Any], policies: Iterable[Any]) -> dict[str, Walls]:
    """By the pods' addresses. Those without one, at their end, or in their node's network are left out."""
    marks = {one.metadata.name: one.metadata.labels or {} for one in namespaces}
    live = [pod for pod in pods if _has_address(pod)]
    every = list(policies)
    return {str(pod.status.podIP): _of(pod, live, marks, every) for pod in live}


def _has_address(pod: Any) -> bool:
    return bool(pod.status and pod.status.podIP and pod.status.phase not in _ENDED and not pod.spec.hostNetwork)


def _of(pod: Any, live: Sequence[Any], marks: Mapping[str, Mapping[str, str]], policies: Sequence[Any]) -> Walls:
    ways: dict[str, list[Match] | None] = {"Ingress": None, "Egress": None}
    for policy in policies:
        spec = policy.spec
        if policy.metadata.namespace != pod.metadata.namespace or not selects(spec.podSelector, _labels(pod)):
            continue
        types = spec.policyTypes or ["Ingress", *(["Egress"] if spec.egress else [])]
        for way in types:
            found = ways[way] = ways[way] or []
            for rule in (spec.ingress if way == "Ingress" else spec.egress) or ():
                peers = rule.from_ if way == "Ingress" else rule.to
                target = pod if way == "Ingress" else None
                found += _matches(peers or (), rule.ports or (), target, policy.metadata.namespace, live, marks)
    ingress, egress = ways["Ingress"], ways["Egress"]
    return Walls(None if ingress is None else tuple(ingress), None if egress is None else tuple(egress))


def _matches(
    peers: Sequence[Any],
    ports: Sequence[Any],
    target: Any | None,
    home: str,
    live: Sequence[Any],
    marks: Mapping[str, Mapping[str, str]],
) -> list[Match]:
    """`target` is the pod that is called, where it is one for all peers; else each peer is the one that is called."""
    if not peers:
        named = [target] if target is not None else live
        return _at((_ANY,), (), ports, named, all_called=target is not None)
    found = []
    for peer in peers:
        if peer.ipBlock is not None:
            if isinstance(ip_network(peer.ipBlock.cidr), IPv4Network):
                without = tuple(peer.ipBlock.except_ or ())
                found += _at(
                    (peer.ipBlock.cidr,), without, ports, [target] if target is not None else [], all_called=True
                )
            continue
        chosen = [one for one in live if _chosen(peer, one, home, marks)]
        if target is not None:
            found += _at(tuple(_address(one) for one in chosen), (), ports, [target], all_called=True)
        else:
            found += _at(tuple(_address(one) for one in chosen), (), ports, chosen, all_called=False)
    return found


def _at(
    addresses: tuple[str, ...],
    without: tuple[str, ...],
    ports: Sequence[Any],
    called: Sequence[Any],
    *,
    all_called: bool,
) -> list[Match]:
    """A port that is named has another number in every pod that is called."""
    if not addresses:
        return []
    plain = tuple(_port(one) for one in ports if not isinstance(one.port, str))
    found = [Match(addresses, without, plain)] if plain or not ports else []
    for one in ports:
        if not isinstance(one.port, str):
            continue
        told = ((pod, _numbers(pod, one)) for pod in called)
        found += [Match(addresses if all_called else (_address(pod),), without, at) for pod, at in told if at]
    return found


def _numbers(pod: Any, port: Any) -> tuple[Port, ...]:
    protocol = port.protocol or "TCP"
    containers = [
        *pod.spec.containers,
        *(one for one in pod.spec.initContainers or () if one.restartPolicy == "Always"),
    ]
    return tuple(
        Port(protocol.lower(), one.containerPort, one.containerPort)
        for container in containers
        for one in container.ports or ()
        if one.name == port.port and (one.protocol or "TCP") == protocol
    )


def _port(port: Any) -> Port:
    first = int(port.port or 0)
    return Port((port.protocol or "TCP").lower(), first, int(port.endPort or first))


def _chosen(peer: Any, pod: Any, home: str, marks: Mapping[str, Mapping[str, str]]) -> bool:
    space = pod.metadata.namespace
    if peer.namespaceSelector is None:
        return space == home and selects(peer.podSelector, _labels(pod))
    if space not in marks or not selects(peer.namespaceSelector, marks[space]):
        return False
    return peer.podSelector is None or selects(peer.podSelector, _labels(pod))


def selects(selector: Any, marks: Mapping[str, str]) -> bool:
    """An empty selector selects everything."""
    if any(marks.get(name) != value for name, value in (selector.matchLabels or {}).items()):
        return False
    return all(_holds(one, marks) for one in selector.matchExpressions or ())


def _holds(one: Any, marks: Mapping[str, str]) -> bool:
    match one.operator:
        case "In":
            return marks.get(one.key) in one.values
        case "NotIn":
            return marks.get(one.key) not in one.values
        case "Exists":
            return one.key in marks
        case "DoesNotExist":
            return one.key not in marks
    raise ValueError(f"no operator {one.operator}")


def _labels(pod: Any) -> Mapping[str, str]:
    return pod.metadata.labels or {}


def _address(pod: Any) -> str:
    return str(pod.status.podIP)


# nftables


def script(found: Mapping[str, Walls], network: str) -> str:
    """The whole table anew, in one transaction. `network` is the pods' own: an address in it that no known pod has is
    that of one which has just begun, and says nothing until it is known."""
    lines = [f"add table ip {TABLE}", f"delete table ip {TABLE}", f"table ip {TABLE} {{"]
    chains: dict[str, list[str]] = {"egress": [], "ingress": []}
    for chain, ours, theirs in (("egress", "saddr", "daddr"), ("ingress", "daddr", "saddr")):
        jumps = []
        for address, one in sorted(found.items()):
            way = one.egress if chain == "egress" else one.ingress
            if way is None:
                continue
            name = f"{chain}-{address.replace('.', '-')}"
            jumps.append(f"{address} : jump {name}")
            allowed = [f"ip {theirs} {address} return", *(line for match in way for line in _words(match, theirs))]
            lines += _chain(name, [*allowed, "reject with icmp type admin-prohibited"])
        chains[chain] = [f"ip {ours} vmap {{ {', '.join(jumps)} }}"] if jumps else []
    strangers = f"ip saddr {network}" + (f" ip saddr != {{ {', '.join(sorted(found))} }}" if found else "") + " drop"
    lines += _chain("egress", chains["egress"]) + _chain("ingress", chains["ingress"])
    answers = "ct state established,related accept"
    passing = "type filter hook forward priority filter; policy accept;"
    lines += _chain("forward", [passing, answers, strangers, "jump egress", "jump ingress"])
    arriving = "type filter hook input priority filter; policy accept;"
    lines += _chain("input", [arriving, 'iifname "lo" accept', answers, strangers, "jump egress"])
    return "\n".join([*lines, "}", ""])


def _chain(name: str, rules: Sequence[str]) -> list[str]:
    return [f"  chain {name} {{", *(f"    {rule}" for rule in rules), "  }"]


def _words(match: Match, theirs: str) -> Iterable[str]:
    where = f"ip {theirs} {{ {', '.join(match.addresses)} }}"
    if match.without:
        where += f" ip {theirs} != {{ {', '.join(match.without)} }}"
    if not match.ports:
        yield f"{where} return"
    for port in match.ports:
        at = f"{port.protocol} dport {port.first}-{port.last}" if port.first else f"meta l4proto {port.protocol}"
        yield f"{where} {at} return"
