"""What should NetworkPolicies allow now? Asks for addresses: of names that the operator listed, of the store, of nodes
and API server. `network_manifest` makes policies of it; `network_policies` asks again every minute.
"""

import asyncio
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import structlog
from lightkube.resources.core_v1 import Node

from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiRefused, ApiUnreachable
from hansa.drivers.kubernetes.network_manifest import Destination, Rules
from hansa.kernel import ip_addresses
from hansa.kernel.egress import DEFAULT_PORTS, Rule
from hansa.kernel.errors import NotFound
from hansa.kernel.ip_addresses import Network
from hansa.kernel.kubernetes import NetworkSettings

_log = structlog.get_logger("hansa.kubernetes")
_RESOLVER = Path("/etc/resolv.conf")
_WITHIN = 10.0  # seconds for one name
_API_SERVER = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
_IN_CLUSTER = re.compile(r"[a-z0-9-]+\.(?P<namespace>[a-z0-9-]+)\.svc(\..+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the settings say."""

    cluster: str
    network: NetworkSettings
    private: str
    """The manager's own namespace."""
    outside: bool
    """Whether this manager is no pod of the cluster."""
    allow: Rule
    store: str
    """Its address, as pods are told it."""
    store_port: int = 0
    """At which the manager's own pod serves it; 0: it does not."""
    resolve: Callable[[str], list[str]]
    """To what addresses a name leads."""
    resolver: Path = _RESOLVER
    """Where a manager inside the cluster finds its name servers."""


async def gathered(api: Connection, sources: Sources) -> Rules:
    """Raises `ApiUnreachable`. A name that leads nowhere now is left out, and said."""
    asked = sources.network
    given = tuple(ip_network(one) for one in asked.managers)
    managers = given or ((await _own_address(api.server),) if sources.outside else ())
    return Rules(
        cluster=sources.cluster,
        egress=asked.egress,
        managers=managers,
        manager_namespace="" if sources.outside else sources.private,
        name_servers=_sorted({*map(ip_network, asked.name_servers), *_name_servers(sources)}),
        allowed=tuple(await _allowed(sources)),
        closed=_sorted({*map(ip_network, asked.closed), *await _closed(api, sources)}),
    )


async def _allowed(sources: Sources) -> list[Destination]:
    rule = sources.allow
    found = [Destination(one) for one in rule.networks if not one.is_loopback]
    found += [Destination(ip_network(one)) for one in sorted(rule.addresses, key=str) if not one.is_loopback]
    pairs = sorted((str(host), port) for host, port in (*rule.address_ports, *rule.name_ports))
    for host, port in (_pair(sources.store), *pairs):
        found += await _destinations(host, port, sources)
    if sources.store_port and not sources.outside:
        found.append(Destination(namespace=sources.private, port=sources.store_port))
    return list(dict.fromkeys(found))


async def _destinations(host: str, port: int, sources: Sources) -> list[Destination]:
    """A Service of this cluster is its pods as well: most networks look at what a Service leads to."""
    found = [Destination(one, port=port) for one in await _addresses(host, sources) if not one.is_loopback]
    if match := _IN_CLUSTER.fullmatch(host):
        found.append(Destination(namespace=match["namespace"], port=port))
    return found


async def _addresses(host: str, sources: Sources) -> tuple[Network, ...]:
    if (literal := ip_addresses.literal(host)) is not None:
        return (ip_network(literal),)
    try:
        async with asyncio.timeout(_WITHIN):
            told = await asyncio.to_thread(sources.resolve, host)
    except (OSError, UnicodeError, TimeoutError):
        _log.warning("a name that pods may call leads nowhere", host=host)
        return ()
    known = (ip_addresses.canonical(one) for one in told)
    return _sorted({ip_network(one) for one in known if one is not None})


async def _closed(api: Connection, sources: Sources) -> set[Network]:
    """The API server and the nodes. Without the right to look, what is known of them is where we call the first."""
    found = set(await _addresses(str(urlsplit(api.server).hostname), sources))
    try:
        slices = await api.ask(_API_SERVER)
        found |= {ip_network(one) for end in slices.get("endpoints") or () for one in end["addresses"]}
    except (ApiRefused, NotFound, ValueError):
        _log.debug("the addresses of the API server are not told", path=quote(_API_SERVER))
    try:
        nodes = await api.list(Node)
    except ApiRefused:
        return found
    return found | {network for node in nodes for network in _of_node(node)}


def _of_node(node: Any) -> Iterator[Network]:
    for one in node.status.addresses or ():
        if one.type in ("InternalIP", "ExternalIP") and (address := ip_addresses.canonical(one.address)) is not None:
            yield ip_network(address)


def _name_servers(sources: Sources) -> Iterator[Network]:
    """Those of our own pod: where a node has a cache of names, they are no pods."""
    if sources.outside or not sources.resolver.is_file():
        return
    for line in sources.resolver.read_text().splitlines():
        word, _, rest = line.strip().partition(" ")
        address = ip_addresses.canonical(rest.strip()) if word == "nameserver" else None
        if address is not None and not address.is_loopback:
            yield ip_network(address)


async def _own_address(server: str) -> Network:
    """With which we reach the API server, and so the pods beside it."""
    there = urlsplit(server)

    def look() -> str:
        family, _, _, _, where = socket.getaddrinfo(there.hostname, there.port or 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(where)  # nothing is sent
            return str(probe.getsockname()[0]).partition("%")[0]

    try:
        async with asyncio.timeout(_WITHIN):
            return ip_network(await asyncio.to_thread(look))
    except (OSError, TimeoutError):
        raise ApiUnreachable(
            f"there is no way to the API server at {there.hostname}",
            hint="from where this manager calls pods can be said by kubernetes.network.managers",
        ) from None


def _pair(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return str(parts.hostname), parts.port or DEFAULT_PORTS.get(parts.scheme, 443)


def _sorted(networks: set[Network]) -> tuple[Network, ...]:
    ordered: Sequence[Network] = sorted(networks, key=str)
    return tuple(ordered)
