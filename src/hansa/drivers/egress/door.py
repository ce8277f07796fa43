"""The one way out for what a tenant's definition or event names.

A name is resolved once, every address it leads to is checked, and exactly a checked one is dialled: a name that answers
differently the second time is not asked a second time. Whoever gets the connected socket speaks what they like over it.
"""

import asyncio
import socket
from collections.abc import Callable, Collection, Sequence
from ipaddress import IPv6Address

from hansa.drivers.egress.lookups import Lookups, Resolve, domain_of, system_resolver
from hansa.drivers.egress.ourselves import leads_home
from hansa.kernel import ip_addresses
from hansa.kernel.egress import HINT, EgressRefused, EgressUnreachable, Pair, Rule, may_dial, may_name, target_of
from hansa.kernel.ip_addresses import Address

_NAMES_AT_ONCE = 64  # a resolver that hangs takes a thread each
_CHECKS_AT_ONCE = 16  # apart, so that whoever only creates services keeps nobody from dialling
_VOUCHED_AT_ONCE = 16  # apart, so that no tenant's word keeps anybody from the cluster's own stores and members
_CHECK_SECONDS = 5.0


class Door:
    """Opened once by `bootstrap`, closed at the end."""

    def __init__(
        self,
        rule: Rule,
        *,
        resolve: Resolve = system_resolver,
        is_ours: Callable[[Address], bool] = leads_home,
    ) -> None:
        self.rule = rule
        self._is_ours = is_ours
        self._dialling = Lookups(resolve, _NAMES_AT_ONCE, "egress")
        self._checking = Lookups(resolve, _CHECKS_AT_ONCE, "egress-check")
        self._vouched = Lookups(resolve, _VOUCHED_AT_ONCE, "egress-vouched")

    async def connect(
        self, host: str, port: int, *, timeout: float, own: Collection[Pair] = (), whose: str = ""
    ) -> socket.socket:
        """A connected, non-blocking socket. `own` are addresses or names, with their ports, that the calling code
        itself vouches for; `whose` is for whom it is called, if that is known. Raises `EgressRefused`, or
        `EgressUnreachable`, within `timeout` seconds."""
        rule = self.rule.with_pairs(own)
        if why := may_name(host, port, rule):
            raise _refused(host, why)
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        try:
            async with asyncio.timeout(timeout):
                lane = self._vouched if rule.names(host, port) else self._dialling
                found = self._permitted(host, port, await _looked_up(host, lane, whose), rule)
                for place, address in enumerate(found):
                    share = (end - loop.time()) / (len(found) - place)  # one that is silent leaves time for the next
                    if (made := await _dial(address, port, share)) is not None:
                        return made
        except TimeoutError:
            pass
        raise EgressUnreachable(
            f"{host[:253]} port {port} cannot be reached", hint="check the address and that its server runs"
        )

    async def check_url(self, url: str, *, scheme: str = "", own: Collection[Pair] = ()) -> None:
        """For definitions: raises `BadTarget` or `EgressRefused` for a URL that would not be called now. A name that
        leads nowhere yet passes; every dial checks again."""
        target = target_of(url, scheme=scheme)
        rule = self.rule.with_pairs(own)
        if why := may_name(target.host, target.port, rule):
            raise _refused(target.host, why)
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                found = await _looked_up(target.host, self._checking)
                self._permitted(target.host, target.port, found, rule)
        except (EgressUnreachable, TimeoutError):
            return

    async def close(self) -> None:
        for lane in (self._dialling, self._checking, self._vouched):
            lane.close()

    def _permitted(self, host: str, port: int, found: Sequence[str], rule: Rule) -> list[Address]:
        """Those that may be dialled, in the resolver's order; the first reason if there is none."""
        good: list[Address] = []
        whys: list[str] = []
        for one in found:
            address = ip_addresses.canonical(one)
            ours = address is not None and self._is_ours(address)
            if why := may_dial(one, port, rule, host=host, ours=ours):
                whys.append(why)
            elif address is not None:
                good.append(address)
        if not good:
            raise _refused(host, whys[0] if whys else "it leads to no address")
        return good


async def _looked_up(host: str, lane: Lookups, whose: str = "") -> Sequence[str]:
    literal = ip_addresses.literal(host)
    if literal is not None:
        return [str(literal)]
    try:
        # A mark apart: nobody's name is that of a domain.
        found = await lane.addresses(host, f"for {whose}" if whose else domain_of(host))
    except (OSError, UnicodeError, ValueError):
        found = ()
    if not found:
        raise EgressUnreachable(f"{host[:253]} leads to no address", hint="check the name")
    return found


def _refused(host: str, why: str) -> EgressRefused:
    return EgressRefused(f"this manager does not call {host[:253]}: {why}", hint=HINT)


async def _dial(address: Address, port: int, seconds: float) -> socket.socket | None:
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    made: socket.socket | None = None
    try:
        made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(seconds):
            await asyncio.get_running_loop().sock_connect(made, (str(address), port))
    except (OSError, TimeoutError):
        if made is not None:
            made.close()
        return None
    except BaseException:
        if made is not None:
            made.close()
        raise
    return made
