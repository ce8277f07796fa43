"""Answers that are made to be laborious: do they end, and does everybody else have a turn while they last?"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest

from hansa.drivers.wire import Flood, WireTransport
from hansa.drivers.wire.flood import FEW, LONGEST_HEAD
from real.broken_tls import send_broken_record
from real.self_signed import self_signed

Act = Callable[[asyncio.StreamWriter], Awaitable[None]]
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
INTERIM = b"HTTP/1.1 100\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Server:
    """Does `act` on each request, and counts the connections."""

    def __init__(self) -> None:
        self.url = ""
        self.calls = 0
        self.acts: list[Act] = []
        self.got = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                act = self.acts[min(self.got, len(self.acts) - 1)]
                self.got += 1
                await act(writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(*acts: Act, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    made = Server()
    made.acts.extend(acts)
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=tls)
    made.url = f"{'https' if tls else 'http'}://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    try:
        yield made
    finally:
        listening.close()


def says(data: bytes) -> Act:
    async def act(writer: asyncio.StreamWriter) -> None:
        writer.write(data)

    return act


def floods(first: bytes, block: bytes) -> Act:
    """For as long as somebody listens."""

    async def act(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(block)
            await writer.drain()
            await asyncio.sleep(0)

    return act


def client() -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=WireTransport(verify=False, limits=httpx.Limits()), timeout=60)


class Turns:
    def __init__(self) -> None:
        self.taken = 0

    async def take(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.taken += 1


@contextmanager
def somebody_else() -> Iterator[Turns]:
    turns = Turns()
    task = asyncio.create_task(turns.take(), name="somebody else")
    try:
        yield turns
    finally:
        task.cancel()


@pytest.fixture(params=["http", "https"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> ssl.SSLContext | None:
    return self_signed(tmp_path) if request.param == "https" else None


async def test_chunks_of_one_byte_end_and_let_others_have_their_turn(tls: ssl.SSLContext | None) -> None:
    async with serving(floods(CHUNKED, b"1\r\n \r\n" * 20_000), tls=tls) as server, client() as http:
        with somebody_else() as turns, pytest.raises(Flood, match="pieces"):
            await http.get(server.url)
    assert turns.taken >= FEW // 40


async def test_interim_answers_end_and_let_others_have_their_turn(tls: ssl.SSLContext | None) -> None:
    async with serving(floods(b"", INTERIM * 20_000), tls=tls) as server, client() as http:
        with somebody_else() as turns, pytest.raises(Flood, match="before the answer's content"):
            await http.get(server.url)
    assert turns.taken >= LONGEST_HEAD // 4096


async def test_many_that_flood_keep_nobody_from_being_answered() -> None:
    """As many as a manager asks one peer at once."""
    flood = floods(CHUNKED, b"1\r\n \r\n" * 20_000)
    async with (
        asyncio.timeout(60),
        serving(flood) as hostile,
        serving(says(OK)) as honest,
        client() as http,
        asyncio.TaskGroup() as tasks,
    ):
        under_way = [tasks.create_task(_flooded(http, hostile.url), name=f"flood {n}") for n in range(32)]
        answered = 0
        while not all(task.done() for task in under_way):
            assert (await http.get(honest.url)).content == b"ok"
            answered += 1
    assert answered > 5


async def _flooded(http: httpx.AsyncClient, url: str) -> None:
    with pytest.raises(Flood):
        await http.get(url)


async def test_bytes_one_by_one_of_which_nothing_comes() -> None:
    """No content for the library to count: the head of a chunk that never ends."""

    async def act(writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"1;")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0)

    async with serving(act) as server, client() as http:
        with pytest.raises(Flood):
            await http.get(server.url)


@pytest.mark.parametrize(
    ("said", "content"),
    [
        (OK, b"ok"),
        (INTERIM * 3 + b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + OK, b"ok"),
        (CHUNKED + b"1\r\nx\r\n" * 1000 + b"0\r\n\r\n", b"x" * 1000),
        (
            CHUNKED + b"200\r\n" + (b"x" * 512 + b"\r\n200\r\n") * 8000 + b"x" * 512 + b"\r\n0\r\n\r\n",
            b"x" * 512 * 8001,
        ),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10000000\r\n\r\n" + b"x" * 10_000_000, b"x" * 10_000_000),
    ],
    ids=["plain", "interim answers", "short and in bytes", "long and in halves of a kilobyte", "long"],
)
async def test_ordinary_answers_pass(said: bytes, content: bytes, tls: ssl.SSLContext | None) -> None:
    async with serving(says(said), tls=tls) as server, client() as http:
        for _ in range(2):
            assert (await http.get(server.url)).content == content
    assert server.calls == 1, "the connection is used again"


async def test_what_comes_behind_an_answer_is_not_read_as_the_next() -> None:
    long = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"x" * 100_000
    async with serving(says(long + INTERIM * 1500), says(OK)) as server, client() as http:
        assert (await http.get(server.url)).content == b"x" * 100_000
        assert (await http.get(server.url)).content == b"ok"
    assert server.calls == 2


async def test_an_upgrade_that_nobody_asked_for_is_no_answer() -> None:
    async with serving(says(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n")) as server, client() as http:
        with pytest.raises(httpx.RemoteProtocolError):
            await http.get(server.url)


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nok"], ids=["head", "body"])
async def test_a_broken_tls_record_is_a_broken_connection(before: bytes, tmp_path: Path) -> None:
    async def act(writer: asyncio.StreamWriter) -> None:
        writer.write(before)
        await send_broken_record(writer)

    async with serving(act, says(OK), tls=self_signed(tmp_path)) as server, client() as http:
        with pytest.raises(httpx.ReadError):
            await http.get(server.url)
        assert (await http.get(server.url)).content == b"ok"
