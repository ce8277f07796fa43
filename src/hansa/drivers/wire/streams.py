"""A connection whose answers are counted while they come, see `flood`. Below the HTTP library: it tells nobody above it
of interim answers.
"""

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore

from hansa.drivers.wire.flood import Account

_SLICE = 4 * 1024  # bytes of a head that are read at once: the library takes all its interim answers in one go


class Counting(httpcore.AsyncNetworkBackend):
    """Connections as `inner` makes them, counted."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        made = await self._inner.connect_tcp(host, port, timeout, local_address, socket_options)
        return Counted(made)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        return Counted(await self._inner.connect_unix_socket(path, timeout, socket_options))

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class Counted(httpcore.AsyncNetworkStream):
    """One request at a time goes over it."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        self._account = Account()
        self._unused = 0  # bytes of the last read of which no content was made
        self._is_spoilt = False

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._account = Account()  # of the answer to what is being asked
        await self._inner.write(buffer, timeout)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        most = max_bytes if self._account.begun else min(max_bytes, _SLICE)
        data = await self._inner.read(most, timeout)
        self._unused = len(data)
        await self._account.came(len(data))
        return data

    def begins(self) -> None:
        """The answer's head is complete. What came with it is little, whatever it is."""
        self._account.begun = True
        self._unused = 0

    async def piece(self, size: int) -> None:
        self._unused = max(0, self._unused - size)
        await self._account.piece(size)

    def ends(self) -> None:
        """The answer is complete. The library would keep what came behind it, and take it for the head of the next."""
        self._is_spoilt = self._unused > _SLICE

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return Counted(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and self._is_spoilt:
            return True  # so the pool asks whether a kept connection can be used again: this one cannot
        return self._inner.get_extra_info(info)
