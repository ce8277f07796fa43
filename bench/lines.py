"""Connections that cost little: ready-made bytes out, a status and a body back, with or without TLS.

Thousands of them fit into one process. TLS runs in memory on top of the socket, so that each can show a certificate of
its own although all share one context: a connection keeps what the context held when it was made.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

Told = Callable[[int, bytes], None]  # a status and a body; 0 is a connection that is gone
LOST = 0
_CHUNK = 1 << 18


class Line(asyncio.Protocol):
    """One question at a time."""

    __slots__ = ("_buffer", "_ends", "_head", "_incoming", "_opened", "_outgoing", "_then", "_tls", "_transport")

    def __init__(self, context: ssl.SSLContext | None = None, name: str = "") -> None:
        self._transport: asyncio.Transport | None = None
        self._then: Told | None = None
        self._buffer = bytearray()
        self._ends = 0  # how long the answer that is coming in will be, as soon as its head is there
        self._head = 0
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tls: ssl.SSLObject | None = None
        if context is not None:
            self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)

    async def open(self, port: int) -> "Line":
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", port)
        await self._opened
        return self

    def send(self, request: bytes, then: Told) -> None:
        if self._transport is None or self._transport.is_closing():
            then(LOST, b"")
            return
        self._then = then
        if self._tls is None:
            self._transport.write(request)
        else:
            self._tls.write(request)
            self._transport.write(self._outgoing.read())

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        answer: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()

        def heard(status: int, body: bytes) -> None:
            if not answer.done():
                answer.set_result((status, body))

        self.send(request, heard)
        return await answer

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, but does not inherit from it
        if self._tls is None:
            self._opened.set_result(None)
        else:
            self._shake_hands(self._tls)

    def data_received(self, data: bytes) -> None:
        if self._tls is None:
            self._take(data)
            return
        self._incoming.write(data)
        if not self._opened.done():
            self._shake_hands(self._tls)
            return
        try:
            while piece := self._tls.read(_CHUNK):
                self._take(piece)
        except ssl.SSLWantReadError:
            pass

    def connection_lost(self, error: Exception | None) -> None:
        if not self._opened.done():
            self._opened.set_exception(error or ConnectionError("the server closed the connection"))
        then, self._then = self._then, None
        if then is not None:
            then(LOST, b"")

    def _shake_hands(self, tls: ssl.SSLObject) -> None:
        assert self._transport is not None
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            self._transport.write(self._outgoing.read())
        except ssl.SSLError as error:
            self._opened.set_exception(error)
            self._transport.close()
        else:
            self._transport.write(self._outgoing.read())
            self._opened.set_result(None)

    def _take(self, data: bytes) -> None:
        self._buffer += data
        if not self._ends:
            self._head = self._buffer.find(b"\r\n\r\n") + 4
            if self._head < 4:
                return
            self._ends = self._head + _length(self._buffer, self._head)
        if len(self._buffer) < self._ends:
            return
        status, body = int(self._buffer[9:12]), bytes(self._buffer[self._head : self._ends])
        del self._buffer[: self._ends]
        self._ends = 0
        then, self._then = self._then, None
        if then is not None:
            then(status, body)


def _length(buffer: bytearray, head: int) -> int:
    found = bytes(buffer[:head]).lower()
    at = found.find(b"content-length:")
    return 0 if at < 0 else int(found[at + 15 :].split(b"\r\n", 1)[0])


def request(method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
    """As a manager's or a person's client sends it, kept open."""
    lines = [f"{method} {path} HTTP/1.1", "Host: hub", "Accept: */*", "Accept-Encoding: gzip, deflate"]
    lines += ["Connection: keep-alive", "User-Agent: bench/1"]
    if headers:
        lines.append(headers)
    if body or method == "POST":
        lines += [f"Content-Length: {len(body)}", "Content-Type: application/json"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body
