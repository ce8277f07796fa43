"""Connections into exposed services: their ports live in a network of their own, so the engine dials for us."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Iterable
from typing import Any

import httpcore

from hansa.entrypoints.http.exposed.limits import CONNECTIONS
from hansa.services import ExposedHost

# Seconds. Kept for longer, a connection would bring every call to the version it was made to, until that one ends in
# the middle of a call. This is less than a version gets to end the calls under way where the new one runs beside it.
_USED_AGAIN_FOR = 0.5


class _Stream(httpcore.AsyncNetworkStream):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._made = time.monotonic()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            async with asyncio.timeout(timeout):
                return await self._reader.read(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout from error
        except OSError as error:
            raise httpcore.ReadError from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            async with asyncio.timeout(timeout):
                self._writer.write(buffer)
                await self._writer.drain()
        except TimeoutError as error:
            raise httpcore.WriteTimeout from error
        except OSError as error:
            raise httpcore.WriteError from error

    async def aclose(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.ConnectError("exposed services are reached in the clear, inside this machine")

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # the pool asks before it uses a kept connection again; who is to be read has ended
            return self._reader.at_eof() or time.monotonic() - self._made > _USED_AGAIN_FOR
        return self._writer.get_extra_info(info)


class _Dialer(httpcore.AsyncNetworkBackend):
    def __init__(self, host: ExposedHost, service: str) -> None:
        self._host = host
        self._service = service

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        sock = await self._host.connect(self._service)
        return _Stream(*await asyncio.open_connection(sock=sock))


class ExposedPools:
    """One pool of connections for each exposed service."""

    def __init__(self, host: ExposedHost) -> None:
        self._host = host
        self._pools: dict[str, httpcore.AsyncConnectionPool] = {}

    def of(self, service: str) -> httpcore.AsyncConnectionPool:
        if service not in self._pools:
            self._pools[service] = httpcore.AsyncConnectionPool(
                network_backend=_Dialer(self._host, service), max_connections=CONNECTIONS
            )
        return self._pools[service]

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()
        self._pools.clear()
