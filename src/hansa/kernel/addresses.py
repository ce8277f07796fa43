"""Which network addresses are counted as one? Whoever has one IPv6 address has a whole network of them."""

from functools import lru_cache
from ipaddress import IPv6Address, ip_address

_OF_ONE_HOST = 64  # bits that every owner of an IPv6 address may choose freely


@lru_cache(maxsize=1024)
def counted_as(address: str) -> str:
    """A name for whoever calls from here, for limits per caller. What is no address counts as itself."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return f"{int(found) >> _OF_ONE_HOST:x}::"
