"""How do other machines reach the embedded store? Through this relay to its S3 port, and to nothing else of it.
Managers that share their work use another to pass on what they are asked.

SeaweedFS binds all its servers to one address, and the inner ones know no users: they stay on loopback. Signatures
are not touched, for they are over the address the client itself used.

Strangers may knock here. No address has more connections than are left for all others: one that is alone has half of
them, which is enough for a proxy or the pods of a node, and nobody is shut out by it.
"""

import asyncio
import contextlib
import math
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence

import structlog

from hansa.drivers.s3.errors import StoreUnreachable
from hansa.kernel import addresses

_log = structlog.get_logger("hansa.store")
_CHUNK = 1 << 18
_MOST = 2048  # connections at a time
_SILENCE = 300.0  # seconds; clients of a store have given up by then
_CONNECT_SECONDS = 10.0


class Relay:
    """Made by `Relay.open`, ended by `close`."""

    def __init__(self, target: Callable[[], tuple[str, int] | None], *, most: int, silence: float) -> None:
        self._target = target
        self._most = most
        self._silence = silence
        self._servers: list[asyncio.Server] = []
        self._visits: set[asyncio.Task[None]] = set()
        self._held: Counter[str] = Counter()  # by address
        self.port = 0

    @classmethod
    async def open(
        cls, host: str, port: int, target: tuple[str, int], *, most: int = _MOST, silence: float = _SILENCE
    ) -> "Relay":
        """A connection on which nobody says anything for `silence` seconds ends."""
        relay = cls(lambda: target, most=most, silence=silence)
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
        """On sockets that are bound, and stay open when it is closed; each connection asks for its target, which knows
        itself how long one may be silent."""
        relay = cls(target, most=_MOST, silence=math.inf)
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
        there = writer.get_extra_info("peername")
        visitor = addresses.counted_as(str(there[0])) if there else ""
        if self._held[visitor] >= self._most - len(self._visits):
            writer.transport.abort()
            return
        visit = asyncio.create_task(self._serve(reader, writer), name="store relay")
        self._visits.add(visit)
        self._held[visitor] += 1

        def over(_: object) -> None:
            self._visits.discard(visit)
            self._held[visitor] -= 1
            if not self._held[visitor]:
                del self._held[visitor]  # whoever is gone takes no memory

        visit.add_done_callback(over)

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
            await self._pass_on(reader, writer, answers, store)
            await self._sent(writer, store)
        finally:
            for end in (writer, store):
                end.transport.abort()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        store: asyncio.StreamWriter,
    ) -> None:
        try:
            async with _unless_silent(self._silence) as heard, asyncio.TaskGroup() as ways:
                ways.create_task(_carry(reader, store, heard))
                ways.create_task(_carry(answers, writer, heard))
        except* TimeoutError:
            for end in (writer, store):
                end.transport.abort()  # who does not read what there is would keep it open
        except* OSError:
            pass  # either side may leave at any time

    async def _sent(self, *ends: asyncio.StreamWriter) -> None:
        """What is left for them is a part of the visit, and counts: who does not read it would keep it open."""
        for end in ends:
            end.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(self._silence, _SILENCE)):
                await asyncio.gather(*(end.wait_closed() for end in ends), return_exceptions=True)


@contextlib.asynccontextmanager
async def _unless_silent(seconds: float) -> AsyncIterator[Callable[[], None]]:
    """Raises `TimeoutError` so long after what it gives was called last."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:

        def heard() -> None:
            if seconds < math.inf:
                limit.reschedule(loop.time() + seconds)

        heard()
        yield heard


async def _carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter, heard: Callable[[], None]) -> None:
    while data := await source.read(_CHUNK):
        heard()
        sink.write(data)
        await sink.drain()
        heard()
    with contextlib.suppress(OSError):
        sink.write_eof()
