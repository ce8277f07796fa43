"""How do other machines reach the embedded store? Through this relay to its S3 port, and to nothing else of it.
Managers that share their work use another to pass on what they are asked.

SeaweedFS binds all its servers to one address, and the inner ones know no users: they stay on loopback. Signatures
are not touched, for they are over the address the client itself used.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence

import structlog

from hansa.drivers.s3.errors import StoreUnreachable

_log = structlog.get_logger("hansa.store")
_CHUNK = 1 << 18
_MOST = 1024  # connections at a time
_CONNECT_SECONDS = 10.0


class Relay:
    """Made by `Relay.open`, ended by `close`."""

    def __init__(self, target: Callable[[], tuple[str, int] | None]) -> None:
        self._target = target
        self._servers: list[asyncio.Server] = []
        self._visits: set[asyncio.Task[None]] = set()
        self.port = 0

    @classmethod
    async def open(cls, host: str, port: int, target: tuple[str, int]) -> "Relay":
        relay = cls(lambda: target)
        try:
            relay._servers = [await asyncio.start_server(relay._accept, host, port)]
        except OSError as error:
            raise StoreUnreachable(
                f"the object store cannot be shown at {host}:{port}: {error.strerror or error}",
                hint="check storage.host and storage.port",
            ) from error
        relay.port = relay._servers[0].sockets[0].getsockname()[1]
        return relay

    @classmethod
    async def over(cls, sockets: Sequence[socket.socket], target: Callable[[], tuple[str, int] | None]) -> "Relay":
        """On sockets that are bound, and stay open when it is closed; each connection asks for its target."""
        relay = cls(target)
        for one in sockets:
            relay._servers.append(await asyncio.start_server(relay._accept, sock=one.dup()))
        return relay

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        for visit in list(self._visits):
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._visits) >= _MOST:
            writer.transport.abort()
            return
        visit = asyncio.create_task(self._serve(reader, writer), name="store relay")
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = self._target()
        try:
            if target is None:
                raise ConnectionRefusedError("there is nobody behind it")
            async with asyncio.timeout(_CONNECT_SECONDS):
                answers, store = await asyncio.open_connection(*target)
        except (OSError, TimeoutError) as error:
            _log.info("what is behind the relay is away", error=str(error))
            writer.transport.abort()
            return
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(_carry(reader, store))
                ways.create_task(_carry(answers, writer))
        except* OSError:
            pass  # either side may leave at any time
        finally:
            for end in (writer, store):
                end.close()


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(_CHUNK):
        sink.write(data)
        await sink.drain()
    with contextlib.suppress(OSError):
        sink.write_eof()
