"""Which addresses may this manager call because a tenant named them? The rule alone; nothing is resolved or dialled.

Public addresses may be called. Loopback, link-local (where clouds keep their metadata), private and other special
addresses, and those of this machine, may not, unless the operator allowed them. `drivers/egress` is the door that asks
here before every connection; definitions are checked by the same rule when they arrive.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv6Network, ip_network
from typing import NamedTuple
from urllib.parse import urlsplit

from hansa.kernel import errors, ip_addresses
from hansa.kernel.ip_addresses import Address, Network

Pair = tuple[str, int]  # an address or a name, and a port

HINT = "an administrator can allow it with the setting egress.allow"
DEFAULT_PORTS = {"http": 80, "https": 443}


class EgressRefused(errors.Forbidden):
    """A definition or an event names an address that this manager does not call."""

    code = "egress.refused"


class EgressUnreachable(errors.Temporary):
    """What a definition or an event names does not answer, or not in time."""

    code = "egress.unreachable"


class AnswerTooLarge(errors.HansaError):
    """What a definition or an event names answers more than is read of it."""

    code, kind = "egress.answer-too-large", errors.Kind.BAD_GATEWAY


class BadTarget(errors.Invalid):
    """A URL that a definition names cannot be called by anybody."""

    code = "egress.bad-target"


@dataclass(frozen=True, slots=True)
class Rule:
    """What the operator allowed beyond public addresses. Made by `Rule.of`."""

    networks: tuple[Network, ...] = ()  # every port
    addresses: frozenset[Address] = frozenset()  # every port
    address_ports: frozenset[tuple[Address, int]] = frozenset()
    name_ports: frozenset[Pair] = frozenset()  # wherever the name leads
    never: frozenset[int] = frozenset()  # ports of this machine that no allowance opens

    @classmethod
    def of(cls, entries: Iterable[str], *, never: Iterable[int] = ()) -> "Rule":
        """From the setting `egress.allow`. Raises `ValueError` in words for an entry that means nothing."""
        rule = cls(never=frozenset(never))
        for entry in entries:
            rule = rule._with_entry(entry.strip())
        return rule

    def with_pairs(self, own: Iterable[Pair]) -> "Rule":
        """With what the calling code itself vouches for, on top."""
        known, names = set(self.address_ports), set(self.name_ports)
        for host, port in own:
            found = ip_addresses.literal(host)
            if found is not None:
                known.add((found, port))
            else:
                names.add((_plain_name(host), port))
        return replace(self, address_ports=frozenset(known), name_ports=frozenset(names))

    def names(self, host: str, port: int) -> bool:
        """Whether the operator vouches for this name at this port, whatever it leads to."""
        return (_plain_name(host), port) in self.name_ports

    def _with_entry(self, entry: str) -> "Rule":
        if "/" in entry:
            return replace(self, networks=(*self.networks, _network(entry)))
        host, port = _split_entry(entry)
        found = ip_addresses.literal(host)
        if found is None:
            if port is None or not _is_name(host):
                raise ValueError(f"{entry[:80]!r} is no network, address or host:port (a name needs its port)")
            return replace(self, name_ports=self.name_ports | {(_plain_name(host), port)})
        if ip_addresses.never_called(found):
            raise ValueError(f"{entry[:80]!r} can never be called: it is {ip_addresses.never_called(found)}")
        if port is None:
            return replace(self, addresses=self.addresses | {found})
        return replace(self, address_ports=self.address_ports | {(found, port)})


class Target(NamedTuple):
    """Where a URL leads."""

    scheme: str
    host: str  # without brackets
    port: int


def may_dial(address: str | Address, port: int, rule: Rule, *, host: str = "", ours: bool = False) -> str:
    """Why this address must not be dialled, in words; "" if it may. `host` is the name that led to it, if it is one
    the operator may have allowed; `ours` says that the address is one of this machine's own."""
    found = ip_addresses.canonical(address)
    if found is None:
        return "it is not an address"
    if not 0 < port < 65536:
        return f"{port} is not a port"
    if why := ip_addresses.never_called(found):
        return f"{found} is {why}"
    loops = ours or found.is_loopback
    if loops and port in rule.never:
        return f"port {port} of this machine is never called for others"
    allowed = (
        (found, port) in rule.address_ports
        or found in rule.addresses
        or (bool(host) and rule.names(host, port))
        # a network says nothing of this machine, unless it is this machine's loopback that it names
        or ((not ours or found.is_loopback) and any(found in network for network in rule.networks))
    )
    inner = ip_addresses.behind_nat64(found)
    if inner is not None and allowed:
        return may_dial(inner, port, rule, ours=ours)
    if allowed:
        return ""
    if why := ip_addresses.special(found):
        return f"{found} is {why}"
    return f"{found} is this machine" if ours else ""


def may_name(host: str, port: int, rule: Rule) -> str:
    """Why nothing at this host may be called, as far as its spelling alone tells; "" if it may be resolved."""
    found = ip_addresses.literal(host)
    if found is not None:
        return may_dial(found, port, rule)
    if rule.names(host, port):
        return ""
    name = _plain_name(host)
    return f"{host[:253]} is this machine" if name == "localhost" or name.endswith(".localhost") else ""


def target_of(url: str, *, scheme: str = "") -> Target:
    """Where a URL leads; `scheme` stands in for one that is missing. Raises `BadTarget` for what no two programs read
    alike: user names, queries, fragments, escapes, odd hosts."""
    text = url.strip()
    if scheme and "://" not in text:
        text = f"{scheme}://{text}"
    if any(mark in text for mark in "?#@\\") or any(ord(letter) <= 32 or ord(letter) > 126 for letter in text):
        raise BadTarget(
            "the address has a user name, a query, a fragment or a character that does not belong there",
            hint="write http(s)://host:port/path and nothing more",
        )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise BadTarget("the address has no valid host and port", hint="write http(s)://host:port") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise BadTarget("the address is neither http nor https", hint="write http(s)://host:port")
    if parts.netloc.endswith(":") or port == 0:
        raise BadTarget("the address has no valid port", hint="write http(s)://host:port")
    if "%" in host or (ip_addresses.literal(host) is None and not _is_name(host)):
        raise BadTarget(f"{host[:80]!r} is not the name of a host", hint="names in other scripts are written as xn--…")
    return Target(parts.scheme, host, port or DEFAULT_PORTS[parts.scheme])


def same_address(one: str, other: str) -> bool:
    """Whether two URLs lead to one and the same literal address. Names never do: where they lead can change."""
    try:
        first, second = ip_addresses.literal(target_of(one).host), ip_addresses.literal(target_of(other).host)
    except BadTarget:
        return False
    return first is not None and first == second


_NAME = re.compile(
    r"(?=.{1,253}\.?$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}))*\.?", re.ASCII
)


def _is_name(host: str) -> bool:
    return bool(_NAME.fullmatch(host)) and not ip_addresses.ends_in_number(host)


def _plain_name(host: str) -> str:
    return host.strip().lower().removesuffix(".")


def _network(entry: str) -> Network:
    try:
        found = ip_network(entry)
    except ValueError:
        raise ValueError(f"{entry[:80]!r} is not a network such as 10.0.0.0/8") from None
    if isinstance(found, IPv6Network) and found.subnet_of(ip_addresses.MAPPED):
        raise ValueError(f"{entry[:80]!r} is not a network such as 10.0.0.0/8: write it as IPv4")
    for known in (*ip_addresses.NEVER, *ip_addresses.SPECIAL):
        if known.version == found.version and known != found and known.subnet_of(found):  # type: ignore[arg-type]
            raise ValueError(f"{entry[:80]!r} is too wide: it holds {known}; list the networks you mean")
        if known in ip_addresses.NEVER and known.version == found.version and found.subnet_of(known):  # type: ignore[arg-type]
            raise ValueError(f"{entry[:80]!r} can never be called: it is {ip_addresses.NEVER[known]}")
    return found


def _split_entry(entry: str) -> tuple[str, int | None]:
    port: str | None
    if entry.startswith("["):
        host, closed, rest = entry[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ValueError(f"{entry[:80]!r} is no address such as [fd00::1]:9000")
        port = rest[1:] if rest else None
    elif entry.count(":") == 1:
        host, _, port = entry.partition(":")
    else:
        host, port = entry, None
    if port is None:
        return host, None
    if not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536):
        raise ValueError(f"{entry[:80]!r} has no valid port")
    return host, int(port)
