"""Does another cluster's manager live, and how far is it? One small unauthenticated question, timed.

Connections are not kept, for there may be thousands of clusters and each is asked seldom; the time counts from the
question to its answer on an open connection, so that it tells of the way and not of the handshakes.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import httpx

from hansa.drivers.oscar import addresses
from hansa.drivers.wire import WireTransport
from hansa.services import peers

_AT_ONCE = 16


class Pinger:
    def __init__(self) -> None:
        self._clients: dict[bool, httpx.AsyncClient] = {}

    async def ping(self, address: peers.Address, timeout: float) -> float:
        """Seconds. Raises `PeerUnreachable`."""
        whom, watch = f"cluster {address.cluster_id}", _Stopwatch()
        try:
            async with (
                asyncio.timeout(timeout),
                self._client(address.verify).stream(
                    "GET",
                    addresses.below(address.endpoint, "health"),
                    timeout=timeout,
                    extensions={"trace": watch.note},
                ) as answer,
            ):
                if answer.status_code != 200:
                    raise peers.PeerUnreachable(f"{whom} answered {answer.status_code}")
        except (TimeoutError, httpx.TimeoutException):
            raise peers.PeerUnreachable(f"{whom} did not answer within {timeout:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise peers.PeerUnreachable(f"{whom} cannot be reached ({type(error).__name__})") from None
        return watch.seconds

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    def _client(self, verify: bool) -> httpx.AsyncClient:
        if verify not in self._clients:
            self._clients[verify] = httpx.AsyncClient(
                transport=WireTransport(
                    verify=verify, limits=httpx.Limits(max_connections=_AT_ONCE, max_keepalive_connections=0)
                ),
                trust_env=False,
                follow_redirects=False,
                headers={"User-Agent": "hansa", "Accept-Encoding": "identity"},
            )
        return self._clients[verify]


class _Stopwatch:
    def __init__(self) -> None:
        self._asked = time.perf_counter()
        self.seconds = 0.0

    async def note(self, event: str, _info: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            self._asked = time.perf_counter()
        elif event.endswith("receive_response_headers.complete"):
            self.seconds = time.perf_counter() - self._asked
