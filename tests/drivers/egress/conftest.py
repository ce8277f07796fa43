"""A server on loopback that remembers every connection, and answers as an attacker would."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest


@dataclass(slots=True)
class Trap:
    port: int = 0
    calls: int = 0
    heard: list[bytes] = field(default_factory=list)
    answer: bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
    endless: bytes = b""  # said again and again after the answer
    pause: float = 0.0  # between two of these
    silent: bool = False  # reads, and never says a word

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heard.append(head)
                if self.silent:
                    await reader.read()
                    return
                writer.write(self.answer)
                while self.endless:
                    writer.write(self.endless)
                    await writer.drain()
                    await asyncio.sleep(self.pause)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.transport.abort()


@asynccontextmanager
async def trap(host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Trap]:
    made = Trap()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(made.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, host, port)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def listening() -> AsyncIterator[Trap]:
    async with trap() as made:
        yield made


class Names:
    """A resolver that answers as told: each name's next answer, and its last one from then on."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.asked: list[str] = []
        self._answers = {name.replace("_", "."): list(each) for name, each in answers.items()}

    def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        left = self._answers.get(host)
        if not left:
            raise OSError("no such name")
        return left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def names() -> type[Names]:
    return Names
