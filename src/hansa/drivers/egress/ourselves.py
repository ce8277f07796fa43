"""Does an address lead back to this very machine? The kernel is asked for its route, so that an address that was added
a moment ago is known too, and so is one that stands beside another on its interface."""

import contextlib
import errno
import socket
import struct
from ipaddress import IPv6Address

from hansa.kernel.ip_addresses import Address

_REQUEST, _GET_ROUTE, _NEW_ROUTE, _ERROR = 1, 26, 24, 2
_DESTINATION = 1  # the attribute of a request
_LOCAL = 2  # the kind of route that ends here
_HEAD = struct.Struct("=IHHII")  # netlink's own: length, type, flags, number, sender
_ROUTE = struct.Struct("=8BI")  # family, bits, …, the kind of route eighth
_SECONDS = 1.0


def leads_home(address: Address) -> bool:
    """Nothing is sent anywhere."""
    if address.is_loopback:
        return True
    try:
        return _kind_of_route(address) == _LOCAL
    except OSError:
        return _can_be_bound(address)


def _kind_of_route(address: Address) -> int | None:
    """None where there is no route at all."""
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    route = _ROUTE.pack(family, address.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    wanted = struct.pack("=HH", 4 + len(address.packed), _DESTINATION) + address.packed
    question = _HEAD.pack(_HEAD.size + len(route) + len(wanted), _GET_ROUTE, _REQUEST, 1, 0) + route + wanted
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(_SECONDS)
        kernel.sendto(question, (0, 0))
        answer = kernel.recv(65536)
    _, kind, *_ = _HEAD.unpack_from(answer)
    if kind == _NEW_ROUTE:
        return int(_ROUTE.unpack_from(answer, _HEAD.size)[7])
    code = -int(struct.unpack_from("=i", answer, _HEAD.size)[0]) if kind == _ERROR else errno.EPROTO
    if code in (errno.ENETUNREACH, errno.EHOSTUNREACH):
        return None
    raise OSError(code, "the kernel does not tell the route")


def _can_be_bound(address: Address) -> bool:
    """Where the kernel does not tell routes: only one's own addresses can be bound. A machine that binds any has this
    one among them for all we know."""
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((str(address), 0))
        return True
    return False
