"""From which address does a request come? The connection's, or what a proxy that we trust says of it.

Used to count per visitor, never to let anybody in.
"""

from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address, ip_network

from starlette.requests import HTTPConnection

from hansa.kernel import addresses

_FORWARDED = "x-forwarded-for"


def address_of(connection: HTTPConnection) -> str:
    """Behind a proxy the last entry counts: the proxy wrote it itself, the ones before came from the client."""
    peer = connection.client.host if connection.client else ""
    if _FORWARDED not in connection.headers:
        return peer
    if not _is_within(peer, connection.app.state.hansa.settings.http.proxies):
        return peer
    told = ",".join(connection.headers.getlist(_FORWARDED)).rpartition(",")[2].strip()
    try:
        return str(ip_address(told))
    except ValueError:
        return peer


def stranger(connection: HTTPConnection) -> str:
    """A name to count somebody by who did not say who they are."""
    return f"address {addresses.counted_as(address_of(connection))}"


@lru_cache(maxsize=1024)
def _is_within(address: str, networks: Iterable[str]) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        return False
    return any(found in ip_network(one) for one in networks)
