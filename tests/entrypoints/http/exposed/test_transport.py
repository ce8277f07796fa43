"""Do calls of exposed services reach the version that answers now, also while another one ends?"""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import cast

import httpcore
import pytest

from hansa.entrypoints.http.exposed.transport import ExposedPools
from hansa.services import ExposedHost

SECONDS = 5.0


class Version:
    """A small server of its own, which says its name to everybody, as often as they ask."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._server: asyncio.Server | None = None

    async def start(self) -> "Version":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def dial(self) -> socket.socket:
        assert self._server is not None
        made = socket.create_connection(self._server.sockets[0].getsockname(), timeout=SECONDS)
        made.setblocking(False)
        return made

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                body = self.name.encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


class Host:
    """Dials whichever version is the current one."""

    def __init__(self) -> None:
        self.current = Version("none")
        self.dialled = 0

    async def connect(self, name: str) -> socket.socket:
        self.dialled += 1
        return await self.current.dial()


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
async def pool(host: Host) -> AsyncIterator[httpcore.AsyncConnectionPool]:
    pools = ExposedPools(cast(ExposedHost, host))
    yield pools.of("page")
    await pools.close()
    host.current.close()


async def test_who_goes_on_calling_soon_reaches_the_new_version(host: Host, pool: httpcore.AsyncConnectionPool) -> None:
    old = host.current = await Version("one").start()
    assert (await pool.request("GET", "http://page/")).content == b"one"
    assert (await pool.request("GET", "http://page/")).content == b"one"
    assert host.dialled == 1  # used again
    host.current = await Version("two").start()
    async with asyncio.timeout(SECONDS):
        while (await pool.request("GET", "http://page/")).content != b"two":
            await asyncio.sleep(0.02)  # never idle for long, so nothing but its age ends the connection
    old.close()
