"""A web server on loopback that behaves as no manager should, and remembers everything it was sent.

It speaks real HTTP over real sockets. `acts` maps a path to what happens there; change it while it runs.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from real.broken_tls import send_broken_record

Act = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str  # with its query
    headers: Mapping[str, str]  # names in lower case
    body: bytes


@dataclass(slots=True)
class Rogue:
    url: str
    acts: dict[str, Act] = field(default_factory=dict)
    got: list[Request] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)  # somebody who waited for us has given up

    def say(
        self,
        path: str,
        body: object = b"",
        status: int = 200,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """A plain answer; what is not bytes is sent as JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()

        async def act(writer: asyncio.StreamWriter) -> None:
            extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
            head = f"HTTP/1.1 {status} Rogue\r\ncontent-type: {kind}\r\ncontent-length: {len(content)}\r\n{extra}\r\n"
            writer.write(head.encode() + content)

        self.acts[path] = act

    def problem(self, path: str, status: int, code: str) -> None:
        """A refusal as Hansa's native routes make it."""
        self.say(path, {"type": f"/problems/{code}", "detail": "no", "status": status}, status, _PROBLEM)

    def hang(self, path: str) -> None:
        """The request is read, and nothing comes back."""

        async def act(writer: asyncio.StreamWriter) -> None:
            await asyncio.Event().wait()

        self.acts[path] = act

    def drip(self, path: str) -> None:
        """A byte now and then, for ever: no single wait is long."""

        async def act(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)

        self.acts[path] = act

    def flood(self, path: str, size: int, status: int = 200) -> None:
        """An answer of `size` bytes without saying so before."""

        async def act(writer: asyncio.StreamWriter) -> None:
            writer.write(f"HTTP/1.1 {status} OK\r\nconnection: close\r\n\r\n".encode())
            for _ in range(size // 65536):
                writer.write(b"x" * 65536)
                await writer.drain()
            writer.close()

        self.acts[path] = act

    def tiny(self, path: str) -> None:
        """Chunks of one byte, for as long as somebody listens."""
        self._pour(path, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 20_000)

    def interim(self, path: str) -> None:
        """Interim answers, and never the one that was asked for."""
        self._pour(path, b"", b"HTTP/1.1 100\r\n\r\n" * 5000)

    def _pour(self, path: str, first: bytes, block: bytes) -> None:
        async def act(writer: asyncio.StreamWriter) -> None:
            writer.write(first)
            while True:
                writer.write(block)
                await writer.drain()
                await asyncio.sleep(0)

        self.acts[path] = act

    def halt(self, path: str, size: int) -> asyncio.Event:
        """So many bytes, and the last one when the event is set."""
        go_on = asyncio.Event()

        async def act(writer: asyncio.StreamWriter) -> None:
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {size + 1}\r\n\r\n".encode() + b"x" * size)
            await go_on.wait()
            writer.write(b"x")

        self.acts[path] = act
        return go_on

    def cut(self, path: str, before: bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{") -> None:
        """The connection ends in the middle of the answer."""

        async def act(writer: asyncio.StreamWriter) -> None:
            writer.write(before)
            await writer.drain()
            writer.close()

        self.acts[path] = act

    def spoil(self, path: str) -> None:
        """The answer is a TLS record that cannot be decrypted."""
        self.acts[path] = send_broken_record

    def paths(self) -> list[str]:
        return [request.path for request in self.got]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await _read(reader)
                self.got.append(request)
                act = self.acts.get(request.path) or self.acts.get(request.path.partition("?")[0])
                if act is None:
                    self.say("?", b"404 page not found", 404, "text/plain")
                    act = self.acts.pop("?")
                gone = asyncio.create_task(reader.read(1), name="rogue listens")
                acting = asyncio.create_task(_act(act, writer), name="rogue acts")
                await asyncio.wait([gone, acting], return_when=asyncio.FIRST_COMPLETED)
                if not acting.done():
                    acting.cancel()
                    self.left.set()
                    return
                gone.cancel()
                await asyncio.wait([gone])
                if writer.is_closing():
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the other side may leave at any time
        finally:
            writer.close()


_PROBLEM = "application/problem+json"


async def _act(act: Act, writer: asyncio.StreamWriter) -> None:
    try:
        await act(writer)
        await writer.drain()
    except ConnectionError:
        pass


async def _read(reader: asyncio.StreamReader) -> Request:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = lines[0].split(" ", 2)
    pairs = [line.partition(":") for line in lines[1:] if line]
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)


@asynccontextmanager
async def rogue_server(tls: Any = None) -> AsyncIterator[Rogue]:
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(rogue.serve(reader, writer), name="rogue server")
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    rogue = Rogue(f"{'https' if tls else 'http'}://127.0.0.1:{port}")
    try:
        yield rogue
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
