"""All other clusters this manager may talk to: implements the port `hansa.services.peers.Peers`.

`bootstrap` opens it once and closes it at the end. It hands out an `OscarPeer` only after `trust.py` agreed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from hansa.drivers.oscar import headers as allowed
from hansa.drivers.oscar.calls import Line, Question
from hansa.drivers.oscar.limits import Limits
from hansa.drivers.oscar.peer import Abilities, OscarPeer
from hansa.drivers.oscar.pinging import Pinger
from hansa.drivers.oscar.trust import Trust
from hansa.kernel.clock import Clock, SystemClock
from hansa.services import peers
from hansa.settings import FederationSettings


class OscarPeers:
    def __init__(
        self,
        given: FederationSettings,
        *,
        own_id: str = "",
        own_endpoint: str = "",
        limits: Limits | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Opens nothing yet. Raises `BadSetting` for an address that is not plain."""
        self._trust = Trust(given, own_id=own_id, own_endpoint=own_endpoint)
        self._limits = limits or Limits(call_timeout=given.call_timeout)
        self._clock = clock or SystemClock()
        self._line = Line(self._limits)
        self._endpoints = Line(self._limits)  # users' own web servers take no connection from our members
        self._pinger = Pinger()
        self._abilities: defaultdict[str, Abilities] = defaultdict(Abilities)  # as many as trusted addresses

    def find(self, cluster_id: str, endpoint: str = "") -> OscarPeer:
        address = self._trust.address(cluster_id, endpoint)
        return OscarPeer(address, self._line, self._limits, self._abilities[address.endpoint], self._clock)

    def know(self, told: Iterable[peers.Address]) -> list[str]:
        """What the hub says of the federation; see `Trust.learn`."""
        return self._trust.learn(told)

    async def ping(self, address: peers.Address, timeout: float) -> float:
        """Seconds until its manager said that it lives. Nothing secret is sent. Raises `PeerUnreachable`."""
        return await self._pinger.ping(address, timeout)

    def endpoint_of(self, cluster_id: str) -> str:
        return self._trust.endpoint_of(cluster_id)

    async def post_event(self, url: str, body: bytes, headers: Mapping[str, str], *, verify: bool) -> None:
        self._trust.require_endpoint(url)
        answer = await self._endpoints.ask(
            Question(
                whom=f"the endpoint {_origin(url)}",
                method="POST",
                url=url,
                verify=verify,
                timeout=self._limits.call_timeout,
                most=self._limits.small_answer,
                headers=allowed.of_endpoint(headers),
                content=body,
                secrets=(url, *headers.values()),
            )
        )
        if answer.status != 200:
            raise answer.trouble()

    async def close(self) -> None:
        await self._line.close()
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
