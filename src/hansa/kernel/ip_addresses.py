"""What does a host mean, if it is an address, and what kind of address is it?

One form for each address, whatever spelling it came in, and the special ranges with their names. `egress` decides by
them what may be called.
"""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, collapse_addresses, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]*|[0-9]+", re.ASCII)

MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL = IPv6Network("2000::/3")

_NOBODY = "no address of a single host"
_DISGUISE = "an IPv4 address in disguise"
_PRIVATE = "private"
_RESERVED = "reserved"
_METADATA = "link-local, where clouds keep their metadata"

# Never called, whatever is allowed.
NEVER: dict[Network, str] = {
    IPv4Network("0.0.0.0/8"): _NOBODY,
    IPv4Network("224.0.0.0/4"): "a multicast address",
    IPv4Network("240.0.0.0/4"): _NOBODY,
    IPv6Network("::/128"): _NOBODY,
    IPv6Network("ff00::/8"): "a multicast address",
    IPv6Network("::ffff:0:0:0/96"): _DISGUISE,
    IPv6Network("64:ff9b:1::/48"): _DISGUISE,
    IPv6Network("2002::/16"): _DISGUISE,
    IPv6Network("2001::/32"): _DISGUISE,
}
# Called only where the operator allowed it. `is_global` of the standard library lets some of these through.
SPECIAL: dict[Network, str] = {
    IPv4Network("10.0.0.0/8"): _PRIVATE,
    IPv4Network("100.64.0.0/10"): "shared by a provider's customers",
    IPv4Network("127.0.0.0/8"): "this machine's loopback",
    IPv4Network("168.63.129.16/32"): "where Azure keeps its metadata",
    IPv4Network("169.254.0.0/16"): _METADATA,
    IPv4Network("172.16.0.0/12"): _PRIVATE,
    IPv4Network("192.0.0.0/24"): _RESERVED,
    IPv4Network("192.0.2.0/24"): _RESERVED,
    IPv4Network("192.88.99.0/24"): _RESERVED,
    IPv4Network("192.168.0.0/16"): _PRIVATE,
    IPv4Network("198.18.0.0/15"): _RESERVED,
    IPv4Network("198.51.100.0/24"): _RESERVED,
    IPv4Network("203.0.113.0/24"): _RESERVED,
    IPv6Network("::1/128"): "this machine's loopback",
    _NAT64: _DISGUISE,
    IPv6Network("fc00::/7"): _PRIVATE,
    IPv6Network("fe80::/10"): _METADATA,
    IPv6Network("fec0::/10"): _PRIVATE,
    IPv6Network("2001::/23"): _RESERVED,
    IPv6Network("2001:db8::/32"): _RESERVED,
    IPv6Network("3fff::/20"): _RESERVED,
}


def public_networks() -> list[tuple[Network, list[Network]]]:
    """All public addresses, as networks without some of their parts."""
    found: list[tuple[Network, list[Network]]] = []
    for whole in (IPv4Network("0.0.0.0/0"), _GLOBAL):
        parts = [one for one in (*NEVER, *SPECIAL) if one.version == whole.version and one.subnet_of(whole)]  # type: ignore[arg-type]
        found.append((whole, list(collapse_addresses(parts))))  # type: ignore[type-var]
    return found


def literal(host: str) -> Address | None:
    """The address that a host is, in any spelling a resolver understands (`0x7f.1`, `2130706433`, `::ffff:7f00:1`);
    None for a name."""
    text = host.strip().strip("[]") if host.startswith("[") else host.strip()
    return canonical(text) or _old_spelling(text.removesuffix("."))


def canonical(address: str | Address) -> Address | None:
    """One form for each address: without its zone, and IPv4 as IPv4."""
    try:
        found = ip_address(address.partition("%")[0]) if isinstance(address, str) else address
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        found = IPv6Address(int(found))
        return found.ipv4_mapped or found
    return found


def _old_spelling(text: str) -> IPv4Address | None:
    """IPv4 as C's `inet_aton` reads it: one to four numbers, decimal, octal or hexadecimal; the last fills the rest."""
    parts = text.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        return None
    *firsts, last = numbers
    if any(number > 255 for number in firsts) or last >= 256 ** (4 - len(firsts)):
        return None
    value = last
    for place, number in enumerate(firsts):
        value += number << (8 * (3 - place))
    return IPv4Address(value)


def _number(part: str) -> int:
    if len(part) > 16:
        raise ValueError("too long for an address")
    if part[:2] in ("0x", "0X"):
        return int(part[2:] or "0", 16)
    return int(part, 8) if len(part) > 1 and part[0] == "0" else int(part)


def ends_in_number(host: str) -> bool:
    """Such a host is meant as an address, and some program may read it as one."""
    return bool(_NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]))


def never_called(address: Address) -> str:
    return next((why for network, why in NEVER.items() if address in network), "")


def special(address: Address) -> str:
    for network, why in SPECIAL.items():
        if address in network:
            return why
    return _RESERVED if isinstance(address, IPv6Address) and address not in _GLOBAL else ""


def behind_nat64(address: Address) -> IPv4Address | None:
    """The address that a translator would call for us."""
    return IPv4Address(int(address) & 0xFFFFFFFF) if isinstance(address, IPv6Address) and address in _NAT64 else None
