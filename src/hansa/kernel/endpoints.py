"""Where is a manager reached, and what speaks against sending credentials there? One strict form of an address. Pure.

Credentials go to an address because it equals one that somebody trusted, so there is one form of each, and what our
parser and the HTTP library could read differently (user names, backslashes, escapes, odd hosts) has none. A number that
a resolver would take for an address (`127.1`, `0x7f.1`) is no name either.
"""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_DEFAULT_PORT = {"http": "80", "https": "443"}
_PLAIN = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~-]+)*)/?",
    re.ASCII,
)
_HEAD = re.compile(r"[A-Za-z]+://[^/]*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NAME = re.compile(r"\.?[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?")


def normal(url: str) -> str:
    """The one form of a manager's address; "" if it is not a plain http(s) URL."""
    head = _HEAD.match(url)
    if head is None:
        return ""
    match = _PLAIN.fullmatch(head.group().lower() + url[head.end() :])
    if match is None or any(step in (".", "..") for step in match["path"].split("/")):
        return ""
    scheme, host, port = match["scheme"], _host(match["host"]), match["port"]
    if not host or (port is not None and not 0 < int(port) < 65536):
        return ""
    number = str(int(port)) if port else _DEFAULT_PORT[scheme]
    shown = "" if number == _DEFAULT_PORT[scheme] else f":{number}"
    return f"{scheme}://{host}{shown}{match['path']}"


def objection(url: str, *, plain_http: Iterable[str] = (), same_machine: bool = False) -> str:
    """Why nobody should be sent to this address with credentials, in words; "" if nothing speaks against it.
    `plain_http` are places where networks are trusted; `same_machine` says that all who call live on one."""
    if not url:
        return "it has no address"
    plain = normal(url)
    if not plain:
        return "it is not a plain http(s) address"
    if is_loopback(plain):
        return "" if same_machine else "it is on loopback, which is another machine for everybody who calls it"
    scheme, host = plain.split("://")[0], _host_of(plain)
    found = _ip(host)
    if found is not None and (found.is_unspecified or found.is_link_local or found.is_multicast or found.is_reserved):
        return "it is an address that no cluster can have"
    if scheme == "https" or any(_is_in(place, host, found) for place in plain_http):
        return ""
    return "it is plain http, and whoever is on the way could read what is sent there"


def is_loopback(url: str) -> bool:
    """Of a plain address: whether it leads to the machine of whoever calls it."""
    host = _host_of(normal(url))
    found = _ip(host)
    return host == "localhost" or host.endswith(".localhost") or (found is not None and found.is_loopback)


def place(text: str) -> str:
    """A network (`10.0.0.0/8`), a host name, or with a dot before it all names below it. Raises `ValueError`."""
    if _NAME.fullmatch(text) and not _NUMBER.fullmatch(text.rpartition(".")[2]):
        return text
    try:
        return str(ip_network(text))
    except ValueError:
        raise ValueError(f"{text[:80]!r} is neither a network such as 10.0.0.0/8 nor a name such as .lab") from None


def places(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(place(text) for text in texts)


def _is_in(where: str, host: str, found: IPv4Address | IPv6Address | None) -> bool:
    if "/" in where:
        return found is not None and found in ip_network(where)
    return host == where or (where.startswith(".") and host.endswith(where))


def _host(text: str) -> str:
    """As it is shown; "" for what some program might read as another address."""
    if text.startswith("["):
        try:
            found = IPv6Address(text[1:-1])
        except ValueError:
            return ""
        return "" if found.ipv4_mapped is not None else f"[{found}]"
    return text if _NUMBER.fullmatch(text.rpartition(".")[2]) is None or _ip(text) is not None else ""


def _host_of(plain: str) -> str:
    match = _PLAIN.fullmatch(plain)
    return match["host"] if match is not None else ""


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None
