"""What one connection may take: uvicorn's protocol with the limits it leaves to a proxy in front.

A client that sends its head slowly, endlessly or never, goes on sending a body nobody reads, or reads nothing of what
it asked for, is let go. One that closes only its sending side still hears the answer.
"""

import asyncio
import http
from typing import Any

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD = 64 * 1024  # request line and headers; tokens have at most 16 KiB
HEAD_SECONDS = 10.0
# After an answer that did not wait for the body: how much of it, and how long, we listen to so that the client
# reads the answer instead of a broken connection.
LINGER_BYTES = 64 * 2**20
LINGER_SECONDS = 10.0
# Of what came in one go: whoever sends thousands of pieces of a byte each, or requests nobody waits for, holds up all
# others while they are looked at.
MOST_PIECES = 512
SMALLEST_PIECES = 64  # bytes on average, if there are as many
MOST_REQUESTS = 128
# A client that takes nothing for so long reads no more. It may well take something now and then only: the system fills
# its own buffers of megabytes again when a third of them is empty.
UNREAD_SECONDS = 120.0
LET_GO = "hansa.let_go"  # in the scope: ends the connection, whatever still waits to be sent

_log = structlog.get_logger("hansa.http")


class TooTiny(Exception):
    """The parser stops at it, and the server refuses the rest with 400."""


class Protocol(HttpToolsProtocol):
    """One connection."""

    unread_seconds = UNREAD_SECONDS
    _head: int | None = 0  # bytes of the head so far; None while a body is read
    _unread = 0  # bytes of a body that came after its answer
    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None  # while more waits to be sent than should
    _pieces = _of_pieces = _requests = 0  # in what came in one go

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._within(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        self._moves_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head += len(data)
        self._pieces = self._of_pieces = self._requests = 0
        super().data_received(data)
        if self.transport.get_protocol() is not self:  # a WebSocket by now
            return
        if self.transport.is_closing():
            self._close()
            return
        if self._head is not None and self._head > LARGEST_HEAD:
            self._refuse(431, f"the address and headers are longer than {LARGEST_HEAD} bytes")
        elif self._idle and self._deadline is None and self.timeout_keep_alive_task is None:
            self._within(HEAD_SECONDS)  # uvicorn stops its own clock at any byte, and these began no request

    def eof_received(self) -> bool | None:  # type: ignore[override]
        asked = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        if not asked or self._is_endless:  # who streams must learn that nobody listens
            return None
        self.cycle.keep_alive = False
        return True

    def on_message_begin(self) -> None:
        self._requests += 1
        if self._requests > MOST_REQUESTS:
            raise TooTiny
        super().on_message_begin()
        self.scope[LET_GO] = self.transport.abort  # type: ignore[literal-required]
        self._head = self._head or 0
        self._within(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._head = None
        self._unread = 0
        self._in_time()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._pieces += 1
        self._of_pieces += len(body)
        if self._pieces > MOST_PIECES and self._of_pieces < self._pieces * SMALLEST_PIECES:
            raise TooTiny
        if self.cycle is not None and self.cycle.response_complete:
            self._unread += len(body)
            if self._unread > LINGER_BYTES:
                self._close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head = 0
        self._in_time()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()
        elif self._head is None:
            self._within(LINGER_SECONDS)

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._moves_on()
        self._stalled = self.loop.call_later(self.unread_seconds, self._nobody_reads)

    def resume_writing(self) -> None:
        self._moves_on()
        super().resume_writing()

    @property
    def _is_endless(self) -> bool:
        path = self.cycle.scope["path"]
        return "/exposed" in path or path.endswith("/stream")

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _within(self, seconds: float) -> None:
        self._in_time()
        self._deadline = self.loop.call_later(seconds, self._too_late)

    def _in_time(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        if self.transport.is_closing():
            self._nobody_reads()
        elif self._head:
            self._refuse(408, f"the headers did not arrive within {HEAD_SECONDS:g} seconds")
        else:
            self._close()

    def _close(self) -> None:
        """As soon as the rest is sent, if anybody takes it."""
        self.transport.close()
        if self in self.connections:  # or it is closed already
            self._within(self.unread_seconds)

    def _nobody_reads(self) -> None:
        if self in self.connections:
            _log.info("reader let go", client=self.client, waiting=self.transport.get_write_buffer_size())
            self.transport.abort()

    def _moves_on(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _refuse(self, status: int, text: str) -> None:
        """An answer of our own: there is no request yet that a route could answer."""
        head: list[Any] = [
            f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}",
            "content-type: text/plain; charset=utf-8",
            f"content-length: {len(text)}",
            "connection: close",
        ]
        self.transport.write("\r\n".join([*head, "", text]).encode())
        self._close()
