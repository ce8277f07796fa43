"""Which network a job has, and how the manager reaches a port inside it."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hansa.drivers.local.sandbox import PortUnreachable, Process

from .conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="package")

CONNECT = """
import socket, sys
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    s = socket.socket(socket.AF_INET, kind); s.settimeout(2)
    try: s.connect((sys.argv[1], int(sys.argv[2]))); s.send(b"x"); print(kind.name, "out")
    except OSError as error: print(kind.name, "refused", error.errno)
"""
SERVE = """
import socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1]))); print("ready", s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept(); c.sendall(c.recv(100).upper()); c.close()
"""


@pytest.fixture
async def listener() -> AsyncIterator[int]:
    """A port of the machine that a job should not reach."""
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_no_network_reaches_nothing(bench: Bench, listener: int) -> None:
    text, _ = await bench.run("/usr/bin/python3", "-c", CONNECT, "127.0.0.1", str(listener))
    outside, _ = await bench.run("/usr/bin/python3", "-c", CONNECT, "192.0.2.1", "9")
    match bench.sandbox.level.network:
        case "netns":
            assert "SOCK_STREAM refused" in text
            assert "SOCK_STREAM refused" in outside
            assert "SOCK_DGRAM refused" in outside
        case "no-tcp":
            assert "SOCK_STREAM refused 13" in text


async def test_the_host_network_is_there_when_asked_for(bench: Bench, listener: int) -> None:
    text, _ = await bench.run("/usr/bin/python3", "-c", CONNECT, "127.0.0.1", str(listener), network="host")
    assert "SOCK_STREAM out" in text


@asynccontextmanager
async def serving(bench: Bench, port: int, network: str) -> AsyncIterator[tuple[Process, int]]:
    process = await bench.start("/usr/bin/python3", "-c", SERVE, str(port), network=network)
    output = process.output()
    first = (await anext(output)).decode()
    assert first.startswith("ready"), first
    try:
        yield process, int(first.split()[1])
    finally:
        await process.kill()
        await process.wait()
        await output.aclose()  # type: ignore[attr-defined]


async def ask(process: Process, port: int) -> bytes:
    connection = await process.dial(port)
    reader, writer = await asyncio.open_connection(sock=connection)
    writer.write(b"hello")
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_dial_a_low_port_of_the_jobs_own_network(bench: Bench) -> None:
    low = 80 if bench.sandbox.level.network == "netns" else 0
    async with serving(bench, low, "own") as (process, port):
        assert await ask(process, port) == b"HELLO"
        assert await ask(process, port) == b"HELLO"


async def test_two_jobs_have_the_same_port(full: Bench) -> None:
    async with serving(full, 8080, "own") as (one, _), serving(full, 8080, "own") as (two, _):
        assert await ask(one, 8080) == b"HELLO"
        assert await ask(two, 8080) == b"HELLO"


async def test_dial_on_the_host(bench: Bench) -> None:
    async with serving(bench, 0, "host") as (process, port):
        assert await ask(process, port) == b"HELLO"


async def test_dial_where_nobody_listens(bench: Bench) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        unused = free.getsockname()[1]
        async with serving(bench, 0, "own") as (process, _):
            with pytest.raises(PortUnreachable):
                await process.dial(unused)
    with pytest.raises(PortUnreachable, match="ended"):
        await process.dial(unused)


async def test_a_full_backlog_holds_nobody_up(full: Bench) -> None:
    script = (
        "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 81)); s.listen(0); "
        "print('ready', flush=True); time.sleep(20)"
    )
    process = await full.start("/usr/bin/python3", "-c", script, network="own")
    output = process.output()
    assert await anext(output) == b"ready\n"
    waiting = [await process.dial(81)]  # the kernel keeps one more than asked
    pending = asyncio.create_task(process.dial(81, timeout=2))
    text, _ = await full.shell("echo others run on")
    assert text == "others run on\n"
    assert not pending.done()
    pending.cancel()
    await process.kill()
    await output.aclose()  # type: ignore[attr-defined]
    for connection in waiting:
        connection.close()


async def test_silence_is_said_in_words(bench: Bench) -> None:
    async with serving(bench, 0, "host") as (process, _):
        with socket.create_server(("127.0.0.1", 0), backlog=0) as silent, socket.socket() as waiting:
            waiting.connect(silent.getsockname())  # the kernel keeps one more than asked
            with pytest.raises(PortUnreachable, match="no answer"):
                await process.dial(silent.getsockname()[1], timeout=0.1)


async def test_a_silent_launcher_is_said_in_words(full: Bench) -> None:
    async with serving(full, 81, "own") as (process, _):
        os.kill(full.sandbox.launcher_pid, signal.SIGSTOP)
        try:
            with pytest.raises(PortUnreachable, match="no answer"):
                await process.dial(81, timeout=0)
        finally:
            os.kill(full.sandbox.launcher_pid, signal.SIGCONT)


async def test_a_job_without_network_cannot_be_dialled(full: Bench) -> None:
    process = await full.start("sleep", "8.0625")
    with pytest.raises(PortUnreachable, match="no network"):
        await process.dial(80)
    await process.kill()
