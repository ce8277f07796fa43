"""Is the embedded store seen beyond its own address, and only its S3 port?"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hansa.drivers.s3 import S3Store, StoreUnreachable, open_embedded
from hansa.drivers.s3.listening import listening
from hansa.drivers.s3.relay import Relay

SECONDS = 20.0
SMALL = 4096  # bytes


def taken(host: str) -> socket.socket:
    return socket.create_server((host, 0))


async def test_objects_pass_with_their_signatures_and_inner_ports_stay_at_home(tmp_path: Path) -> None:
    with taken("127.0.0.2") as probe:
        port = probe.getsockname()[1]
    opened = await open_embedded(tmp_path / "store", host="127.0.0.2", port=port)
    try:
        assert opened.store.address.endpoint == f"http://127.0.0.2:{port}"
        visitor = S3Store(opened.store.address, opened.keys)
        content = bytes(range(256)) * 20_000
        await visitor.create_bucket("harbour")
        await visitor.put("harbour", "crate", content)
        assert await visitor.get("harbour", "crate") == content
        await visitor.close()
        assert opened.embedded is not None
        assert {host for host, _ in listening(opened.embedded.weed_pid) or ()} == {"127.0.0.1"}
    finally:
        await opened.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5)


async def test_a_taken_port_is_said_and_leaves_nothing_running(tmp_path: Path) -> None:
    with taken("127.0.0.2") as other, pytest.raises(StoreUnreachable, match=r"storage\.host|cannot be shown"):
        await open_embedded(tmp_path / "store", host="127.0.0.2", port=other.getsockname()[1])
    again = await open_embedded(tmp_path / "store")  # the folder is free
    await again.close()


class Visitor:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def is_served(self) -> bool:
        self._writer.write(b"hello")
        try:
            async with asyncio.timeout(SECONDS):
                return await self._reader.readexactly(5) == b"hello"
        except (ConnectionError, asyncio.IncompleteReadError):
            return False

    async def is_sent_away(self) -> bool:
        async with asyncio.timeout(SECONDS):
            try:
                return not await self._reader.read(1)
            except ConnectionError:
                return True

    async def only_speaks(self) -> None:
        """Fills all that is between them, and reads nothing of what comes back. Returns when it is sent away."""
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(SECONDS):
            with suppress(ConnectionError):
                while True:
                    self._writer.write(b"x" * (1 << 20))
                    await self._writer.drain()

    def leave(self) -> None:
        self._writer.transport.abort()


@dataclass(slots=True)
class Harbour:
    relay: Relay
    _visitors: list[Visitor] = field(default_factory=list)

    async def visitor(self, address: str = "127.0.0.1") -> Visitor:
        made = Visitor(*await asyncio.open_connection("127.0.0.1", self.relay.port, local_addr=(address, 0)))
        self._visitors.append(made)
        return made

    def leave(self) -> None:
        for one in self._visitors:
            one.leave()


@asynccontextmanager
async def before_an_echo(most: int = 64, silence: float = 60.0) -> AsyncIterator[Harbour]:
    """A relay to somebody who says everything back."""
    visits: set[asyncio.StreamWriter] = set()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.add(writer)
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    relay = await Relay.open("127.0.0.1", 0, server.sockets[0].getsockname()[:2], most=most, silence=silence)
    made = Harbour(relay)
    try:
        yield made
    finally:
        made.leave()
        await relay.close()
        server.close()
        for writer in visits:
            writer.transport.abort()


async def test_one_address_leaves_as_much_as_it_has_to_the_others() -> None:
    async with before_an_echo(most=64) as harbour:
        strangers = [await harbour.visitor("127.0.0.9") for _ in range(100)]
        served = [one for one in strangers if await one.is_served()]
        assert len(served) == 32
        others = [await harbour.visitor(f"127.0.0.{number}") for number in range(10, 14) for _ in range(2)]
        assert all([await one.is_served() for one in others])
        assert not await (await harbour.visitor("127.0.0.9")).is_served()
        for one in served:
            one.leave()
        async with asyncio.timeout(SECONDS):
            while not await (await harbour.visitor("127.0.0.9")).is_served():
                await asyncio.sleep(0.01)  # the relay hears a moment later that they left


async def test_whoever_says_nothing_is_let_go_and_whoever_does_not() -> None:
    async with before_an_echo(silence=5.0) as harbour:
        silent, talking = await harbour.visitor(), await harbour.visitor()

        async def talk() -> None:
            while await talking.is_served():
                await asyncio.sleep(0.1)

        speaking = asyncio.create_task(talk())
        assert await silent.is_sent_away()
        assert not speaking.done()
        speaking.cancel()
        await asyncio.wait({speaking})


async def test_whoever_does_not_read_is_let_go_too() -> None:
    async with before_an_echo(silence=0.5) as harbour:
        await (await harbour.visitor()).only_speaks()


async def test_whoever_does_not_read_the_last_of_an_answer_is_let_go_too() -> None:
    """How much the kernel takes is its own affair: of so many answers some are left over by so little that the relay
    takes the rest, and has nothing more to read."""

    asked = asyncio.Semaphore(0)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            writer.write(b"x" * int(await reader.readline()))
            asked.release()
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    relay = await Relay.open("127.0.0.1", 0, server.sockets[0].getsockname()[:2], silence=0.5)
    relay._servers[0].sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)  # and so has each of its visits
    before = len(os.listdir("/proc/self/fd"))
    try:
        with ExitStack() as opened:
            visitors = [opened.enter_context(socket.socket()) for _ in range(20)]
            for number, visitor in enumerate(visitors):
                visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
                visitor.connect(("127.0.0.1", relay.port))
                visitor.sendall(b"%d\n" % (number * 20_000))
                visitor.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(SECONDS):
                for _ in visitors:
                    await asked.acquire()
                while len(os.listdir("/proc/self/fd")) > before + len(visitors):
                    await asyncio.sleep(0.01)
    finally:
        await relay.close()
        server.close()
