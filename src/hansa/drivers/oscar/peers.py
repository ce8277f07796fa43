"""All other clusters this manager may talk to: implements the port `hansa.services.peers.Peers`.

`bootstrap` opens it once and closes it at the end. It hands out an `OscarPeer` only after `trust.py` agreed.
"""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from urllib.parse import urlsplit

import httpx

from hansa.drivers.oscar import headers as allowed
from hansa.drivers.oscar.calls import Line, Question
from hansa.drivers.oscar.limits import Limits
from hansa.drivers.oscar.peer import Abilities, OscarPeer
from hansa.drivers.oscar.pinging import Pinger
from hansa.drivers.oscar.trust import Trust
from hansa.kernel.clock import Clock, SystemClock
from hansa.kernel.egress import Pair
from hansa.kernel.federation import FederationSettings
from hansa.services import peers

# TLS to trust, and the literal addresses with their ports that the operator named as endpoints
Outward = Callable[[ssl.SSLContext | bool, Collection[Pair]], httpx.AsyncBaseTransport]

_MANY = 200


class OscarPeers:
    def __init__(
        self,
        given: FederationSettings,
        *,
        own_id: str = "",
        own_endpoint: str = "",
        limits: Limits | None = None,
        clock: Clock | None = None,
        outward: Outward | None = None,
    ) -> None:
        """Opens nothing yet. Raises `BadSetting` for an address that is not plain. `outward` is how members of type
        `endpoint` are called, which tenants name; without it they are not."""
        self._trust = Trust(given, own_id=own_id, own_endpoint=own_endpoint)
        self._limits = limits or Limits(call_timeout=given.call_timeout)
        self._clock = clock or SystemClock()
        self._line = Line(self._limits)
        self._endpoints: Line | None = None  # of its own: users' web servers take no connection from our members
        if outward is not None:
            given_literally = self._trust.literal_endpoints()
            self._endpoints = Line(self._limits, lambda verify: outward(verify, given_literally))
        self._pinger = Pinger()
        self._abilities: defaultdict[str, Abilities] = defaultdict(Abilities)  # as many as trusted addresses

    def find(self, cluster_id: str, endpoint: str = "") -> OscarPeer:
        address = self._trust.address(cluster_id, endpoint)
        return OscarPeer(address, self._line, self._limits, self._abilities[address.endpoint], self._clock)

    async def know(self, told: Sequence[peers.Address]) -> dict[str, str]:
        """What the hub says of the federation; see `Trust.learn`. Many are judged aside."""
        many = len(told) > _MANY
        judged = await asyncio.to_thread(self._trust.judge, told) if many else self._trust.judge(told)
        return self._trust.believe(judged)

    async def ping(self, cluster_id: str, timeout: float) -> float:
        """Seconds until its manager said that it lives. Nothing secret is sent, and nothing at all to an address that
        is not trusted. Raises `PeerUnreachable` and `UntrustedCluster`."""
        return await self._pinger.ping(self._trust.address(cluster_id), timeout)

    def endpoint_of(self, cluster_id: str) -> str:
        return self._trust.endpoint_of(cluster_id)

    async def post_event(self, url: str, body: bytes, headers: Mapping[str, str], *, verify: bool) -> None:
        self._trust.require_endpoint(url)
        whom = f"the endpoint {_origin(url)}"
        if self._endpoints is None:
            raise peers.UntrustedCluster(f"this manager has no way to {whom}")
        answer = await self._endpoints.ask(
            Question(
                whom=whom,
                method="POST",
                url=url,
                verify=verify,
                timeout=self._limits.call_timeout,
                most=self._limits.small_answer,
                own_words=False,
                headers=allowed.of_endpoint(headers),
                content=body,
                secrets=(url, *headers.values()),
            )
        )
        if answer.status != 200:
            raise answer.trouble()

    async def close(self) -> None:
        await self._line.close()
        if self._endpoints is not None:
            await self._endpoints.close()
        await self._pinger.close()


def _origin(url: str) -> str:
    """What may be shown of a user's address: paths and queries of web hooks are often secret."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        raise peers.PeerRefused(
            "the member's url is not an http(s) address without a user name",
            status=400,
            hint="write credentials into the member's headers",
        )
    return f"{parts.scheme}://{host}" + (f":{port}" if port is not None else "")
