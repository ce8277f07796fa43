"""What is special about a member's connection? Who is at its other end, and that nearly all it brings is heartbeats.

A heartbeat that is short, whole and from a member beyond doubt is answered right where its last byte comes in. The way
through the server and the framework, which is there for requests that wait for something, would cost as much as TLS,
reading and answering together. All else goes that way: what is refused, and what comes slowly, is told there.
"""

import asyncio
from typing import Any, cast

import structlog

from hansa.entrypoints.http.hub.members import HEARTBEAT, SHORT, WAITING, Shortcut
from hansa.entrypoints.http.hub.tls import EXTENSION
from hansa.entrypoints.http.protocol import Protocol
from hansa.identity import authority

_log = structlog.get_logger("hansa.hub")
_CONTINUE = b"HTTP/1.1 100"
_HEARTBEAT = HEARTBEAT.encode()


class MembersProtocol(Protocol):
    """Reads the client's certificate once for each connection, and shows it with every request."""

    _shown: authority.Presented | None = None
    _beat: bytearray | None = None  # what came of the heartbeat that may be answered at once

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WAITING)
        connection = transport.get_extra_info("ssl_object")
        der = connection.getpeercert(binary_form=True) if connection is not None else None
        if der:
            try:
                self._shown = authority.presented(der)
            except authority.NotACluster as error:
                _log.warning("a certificate of ours that names no cluster", error=error.message)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast(dict[str, Any], self.scope)["extensions"] = {EXTENSION: self._shown}

    def on_headers_complete(self) -> None:
        if self._is_plain_heartbeat():
            self._head, self._beat = None, bytearray()  # the time for its head is the time for all of it
        else:
            self._go_the_long_way()

    def on_body(self, body: bytes) -> None:
        if self._beat is None:
            super().on_body(body)
            return
        self._beat += body
        if len(self._beat) > SHORT:  # nobody has looked yet at who sends them
            self._hand_over()

    def on_message_complete(self) -> None:
        if self._beat is not None:
            answer = cast(Shortcut, self.app).heard_at_once(cast(authority.Presented, self._shown), bytes(self._beat))
            if answer is None:
                self._hand_over()
            else:
                self._answer(answer)
                return
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.cycle is not None and isinstance(self.cycle.transport, _InOne):
            self.cycle.transport.flush()
        super().on_response_complete()

    def _is_plain_heartbeat(self) -> bool:
        parser = self.parser
        return (
            self.url == _HEARTBEAT
            and parser.get_method() == b"POST"
            and self._shown is not None
            and isinstance(self.app, Shortcut)
            and self._idle
            and not self.flow.write_paused
            and not self.expect_100_continue
            and parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade()
        )

    def _answer(self, body: bytes) -> None:
        self._head, self._beat = 0, None
        self._in_time()
        told = [b"%b: %b\r\n" % header for header in self.server_state.default_headers]
        told.append(b"content-length: %d\r\ncontent-type: application/json\r\n\r\n" % len(body))
        self.transport.write(b"HTTP/1.1 200 OK\r\n" + b"".join(told) + body)
        self.on_response_complete()

    def _hand_over(self) -> None:
        """As if nobody had looked at it yet."""
        body, self._beat = self._beat, None
        self._go_the_long_way()
        if body:
            super().on_body(bytes(body))

    def _go_the_long_way(self) -> None:
        super().on_headers_complete()
        if self.cycle is not None and self.cycle.transport is self.transport:
            self.cycle.transport = cast(asyncio.Transport, _InOne(self.transport))

    def _too_late(self) -> None:
        if self._beat is not None and not self.transport.is_closing():
            self._hand_over()
        else:
            super()._too_late()


class _InOne:
    """One answer's way out: its head waits for the first part of the body, so that both are encrypted and sent at once.
    For short answers that is a tenth of all they cost."""

    __slots__ = ("_head", "_transport", "_wait")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""
        self._wait = True

    def write(self, data: bytes) -> None:
        if self._wait and not data.startswith(_CONTINUE):
            self._head, self._wait = data, False
            return
        if self._head:
            data, self._head = self._head + data, b""
        self._transport.write(data)

    def flush(self) -> None:
        """Of an answer that has no body."""
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
