"""Is a client that reads nothing let go, and one that reads slowly not?"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from entrypoints.http.hub.serving import served, until
from hansa.entrypoints.http.pieces import PIECE, send_in_pieces
from hansa.entrypoints.http.protocol import Protocol

LITTLE = 4096  # bytes that the system keeps for a connection, at most some more
PATIENCE = 60.0
SHORT = PIECE - 1024  # the server has it all at once


class Watched(Protocol):
    """Says when a connection has ended."""

    lost: list[Protocol]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LITTLE)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.append(self)


def watched(seconds: float) -> type[Watched]:
    class Hasty(Watched):
        unread_seconds = seconds
        lost: list[Protocol] = []

    return Hasty


def answering(size: int) -> ASGIApp:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"%d" % size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send_in_pieces(send, {"type": "http.response.body", "body": b"x" * size})

    return app


@asynccontextmanager
async def asking(port: int, *lines: str) -> AsyncIterator[socket.socket]:
    """A connection that asked for something and read nothing yet."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LITTLE)
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(client, "\r\n".join(["GET / HTTP/1.1", "Host: x", *lines, "", ""]).encode())
        yield client


async def read_slowly(client: socket.socket) -> bytes:
    """All until the other side closes."""
    heard, loop = b"", asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE):
        while piece := await loop.sock_recv(client, 16 * 1024):
            heard += piece
            await asyncio.sleep(0.05)
    return heard


@pytest.mark.parametrize("size", [SHORT, 20 * PIECE], ids=["short", "long"])
@pytest.mark.parametrize("lines", [(), ("Connection: close",)], ids=["kept", "closed"])
async def test_who_reads_nothing_is_let_go(size: int, lines: tuple[str, ...]) -> None:
    protocol = watched(0.2)
    async with served(answering(size), protocol=protocol) as port, asking(port, *lines):
        await until(lambda: protocol.lost, PATIENCE)


async def test_who_reads_slowly_gets_it_all() -> None:
    """For longer than anybody may read nothing."""
    size, protocol = 10 * PIECE, watched(3.0)
    async with served(answering(size), protocol=protocol) as port, asking(port, "Connection: close") as client:
        heard = await read_slowly(client)
    assert heard.count(b"x") == size
