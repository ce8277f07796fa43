"""Do calls of exposed services reach the version that answers now, and get whole answers that hold up no others?"""

import asyncio
import contextlib
import gc
import socket
from collections.abc import AsyncIterator
from typing import Self, cast

import pytest

from hansa.entrypoints.http.exposed.transport import ExposedPools, Pool
from hansa.services import ExposedHost

SECONDS = 5.0
TINY = 20_000  # pieces; they take two seconds at least


class Version:
    """A small server of its own, which says its name to everybody, as often as they ask."""

    def __init__(self, name: str, tiny: int = 0) -> None:
        self.name = name
        self._tiny = b"transfer-encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * tiny + b"0\r\n\r\n" if tiny else b""
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None] | None] = set()

    async def start(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def dial(self) -> socket.socket:
        assert self._server is not None
        made = socket.create_connection(self._server.sockets[0].getsockname(), timeout=SECONDS)
        made.setblocking(False)
        return made

    async def close(self) -> None:
        """When those who are connected have left."""
        assert self._server is not None
        self._server.close()
        await asyncio.gather(*filter(None, self._serving))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.current_task())
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                body = self.name.encode()
                plain = b"content-length: %d\r\n\r\n%b" % (len(body), body)
                writer.write(b"HTTP/1.1 200 OK\r\n" + (self._tiny or plain))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


class Host:
    """Dials whichever version is the current one."""

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self.dialled = 0

    async def run(self, version: Version) -> None:
        self.versions.append(await version.start())

    async def connect(self, name: str) -> socket.socket:
        self.dialled += 1
        return await self.versions[-1].dial()


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
async def pools(host: Host) -> AsyncIterator[ExposedPools]:
    pools = ExposedPools(cast(ExposedHost, host))
    yield pools
    await pools.close()
    for version in host.versions:
        await version.close()


@pytest.fixture
def pool(pools: ExposedPools) -> Pool:
    return pools.of("page")


async def asked(pool: Pool) -> bytes:
    async def request() -> AsyncIterator[bytes]:
        yield b"GET / HTTP/1.1\r\nhost: page\r\n\r\n"

    connection = await pool.take()
    try:
        await connection.send(request())
        answer = await connection.head("GET")
        return b"".join([part async for part in connection.body(answer)])
    finally:
        pool.give_back(connection)


async def test_who_goes_on_calling_soon_reaches_the_new_version(host: Host, pool: Pool) -> None:
    await host.run(Version("one"))
    assert await asked(pool) == b"one"
    assert await asked(pool) == b"one"
    assert host.dialled == 1  # used again
    await host.run(Version("two"))
    async with asyncio.timeout(SECONDS):
        while await asked(pool) != b"two":
            await asyncio.sleep(0.02)  # never idle for long, so nothing but its age ends the connection


async def test_tiny_pieces_arrive_whole_and_let_others_pass(host: Host, pool: Pool) -> None:
    await host.run(Version("many", tiny=TINY))
    slow = asyncio.create_task(asked(pool))
    while not host.dialled:
        await asyncio.sleep(0)
    await host.run(Version("quick"))
    for _ in range(3):
        assert await asked(pool) == b"quick"
    assert not slow.done()
    assert await slow == b"a" * TINY


async def test_a_pool_that_nobody_uses_any_more_is_forgotten(host: Host, pools: ExposedPools) -> None:
    """Its service may be gone, and the next of another name has one of its own."""
    await host.run(Version("one"))
    for number in range(3):
        assert await asked(pools.of(f"page-{number}")) == b"one"
    assert len(pools) == 3  # each keeps a connection for the next call
    assert await asked(pools.of("page-0")) == b"one"
    assert host.dialled == 3
    async with asyncio.timeout(SECONDS):
        while len(pools):
            gc.collect()
            await asyncio.sleep(0.02)
