"""WebSockets between a visitor and an exposed service, by the same rules as everything else there."""

import asyncio
import socket
from contextlib import ExitStack, suppress

import structlog
from starlette.websockets import WebSocket

from hansa.bootstrap import App
from hansa.entrypoints.http.clients import address_of
from hansa.entrypoints.http.exposed import headers, visitors
from hansa.entrypoints.http.exposed.tunnel import TUNNEL, TunnelProtocol
from hansa.kernel.errors import HansaError
from hansa.services import reading

_LARGEST_HEAD = 64 * 1024
_PATIENCE = 10.0  # seconds for the process to answer the handshake
_UPGRADED = b"HTTP/1.1 101 "
_HANDSHAKE = ("key", "version", "protocol", "extensions")  # what the visitor says; all of it begins with sec-websocket-
_log = structlog.get_logger("hansa.http")


class _Refused(Exception):
    """The process does not want a WebSocket."""


async def pass_on_socket(visitor: WebSocket) -> None:
    app: App = visitor.app.state.hansa
    name = visitor.path_params["name"]
    with ExitStack() as held:
        try:
            record = reading.exposed(app.room, name)
            await visitors.check(app, record, visitor)
            held.enter_context(visitor.app.state.exposed_limits.sockets.taken(name, address_of(visitor)))
            sock = await app.room.exposed_host.connect(name)
        except HansaError as error:
            await visitor.close(1008, error.message[:120])
            return
        try:
            await _talk(visitor, sock, name, visitors.target(record, visitor), app.settings.exposed.socket_idle)
        except (_Refused, OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            _log.info("no WebSocket", service=name, error=type(error).__name__)
            await visitor.close(1011, "the service did not answer")


async def _talk(visitor: WebSocket, sock: socket.socket, name: str, target: bytes, idle: float) -> None:
    """Both handshakes as one: the visitor hears what the process answers."""
    reader, writer = await asyncio.open_connection(sock=sock, limit=_LARGEST_HEAD)
    try:
        async with asyncio.timeout(_PATIENCE):
            writer.write(_asked(visitor, name, target))
            await writer.drain()
            answer = _told(await reader.readuntil(b"\r\n\r\n"))
        tunnel: TunnelProtocol = visitor.scope[TUNNEL]
        await tunnel.pass_on(answer, reader, writer, idle)
    finally:
        writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await writer.wait_closed()
        writer.transport.abort()


def _asked(visitor: WebSocket, name: str, target: bytes) -> bytes:
    """What the process gets. It decides whom it talks to by `Origin`, and knows visitors by its own cookies."""
    told = [("host", name), ("upgrade", "websocket"), ("connection", "Upgrade")]
    names = [f"sec-websocket-{word}" for word in _HANDSHAKE]
    told += [(one, value) for one in names for value in visitor.headers.getlist(one)]
    told += [("origin", one) for one in visitor.headers.getlist("origin")[:1]]
    if cookie := headers.cookie(visitor.headers.raw):
        told.append(("cookie", cookie))
    lines = [b"GET " + target + b" HTTP/1.1", *(f"{one}: {value}".encode("latin-1") for one, value in told)]
    return b"\r\n".join([*lines, b"", b""])


def _told(head: bytes) -> bytes:
    """What the visitor gets of the process's answer: that it agrees, and on what."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if not (first + b" ").startswith(_UPGRADED):
        raise _Refused
    begun = [b"HTTP/1.1 101 Switching Protocols", b"upgrade: websocket", b"connection: Upgrade"]
    return b"\r\n".join([*begun, *headers.agreed(lines), b"", b""])
