"""A way to a server that can lose an answer: bytes go through, until the chosen connection is to hear nothing.

    async with relay(port) as way:
        way.deafen(2)     # the second connection from now on: what is said to it after its handshake is lost

TLS stays whole, for nobody looks into it: after the handshake a server of ours only speaks when it was asked.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

_CHUNK = 1 << 16


@dataclass(slots=True)
class Relay:
    targets: Sequence[int]  # ports, taken in turn
    port: int = 0
    connections: int = 0
    _deaf: int = 0
    _open: dict[asyncio.StreamWriter, asyncio.Event] = field(default_factory=dict)

    def deafen(self, number: int) -> None:
        self._deaf = self.connections + number

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        over = self._open[writer] = asyncio.Event()
        try:
            await self._carry(reader, writer)
        finally:
            writer.close()
            del self._open[writer]
            over.set()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = self.targets[self.connections % len(self.targets)]
        self.connections += 1
        deaf = self.connections == self._deaf
        try:
            behind_reader, behind = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            return
        said = 0  # how often the client spoke: first its hello, then the request

        async def up() -> None:
            nonlocal said
            while data := await reader.read(_CHUNK):
                said += 1
                behind.write(data)
                await behind.drain()
            behind.write_eof()

        async def down() -> None:
            while data := await behind_reader.read(_CHUNK):
                if deaf and said > 1:
                    return
                writer.write(data)
                await writer.drain()

        try:
            with suppress(OSError, RuntimeError):
                both = [asyncio.create_task(up()), asyncio.create_task(down())]
                _, rest = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                if both[0] not in rest and not deaf:
                    await asyncio.wait(rest, timeout=5)
                for one in both:
                    one.cancel()
                await asyncio.gather(*both, return_exceptions=True)
        finally:
            behind.close()

    async def stop(self) -> None:
        """By closing: whoever is cancelled here is reported as a failure by Python's own streams."""
        ends = list(self._open.items())
        for writer, _ in ends:
            writer.close()
        async with asyncio.timeout(10):
            for _, over in ends:
                await over.wait()


@asynccontextmanager
async def relay(*targets: int) -> AsyncIterator[Relay]:
    way = Relay(targets)
    server = await asyncio.start_server(way.accept, "127.0.0.1", 0)
    way.port = server.sockets[0].getsockname()[1]
    try:
        yield way
    finally:
        server.close()
        await way.stop()
