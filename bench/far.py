"""Servers far away, on this machine: a proxy that makes a link long, and status pages that answer late or never.

`far_servers` runs them in a process of their own, so that their work is not counted with what is measured:
`python -m bench.far` reads what to open as JSON from its standard input, writes the ports, and ends with its input.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence

from bench import ROOT

ONE_WAY = 0.025  # seconds each direction of a link takes
_CHUNK = 1 << 16
_GI = 2**30


@contextlib.contextmanager
def far_servers(orders: Sequence[int | str]) -> Iterator[list[int]]:
    """A port for each order: a number is a server of ours to reach over a long link; `status` is a manager that shows
    its status, `hung` one that takes the question and says nothing."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.far"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(list(orders)) + "\n")
        process.stdin.flush()
        yield json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()


async def _later(source: asyncio.StreamReader, target: asyncio.StreamWriter, opening: float) -> None:
    """Everything that comes, late by one way; the first bytes also by what it takes to open a connection."""
    loop = asyncio.get_running_loop()
    ready = loop.time() + opening
    while data := await source.read(_CHUNK):
        ready = max(ready, loop.time() + ONE_WAY)
        loop.call_at(ready, target.write, data)
    loop.call_at(max(ready, loop.time() + ONE_WAY), target.close)


async def _link(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    answers, server = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.suppress(ConnectionError):
        await asyncio.gather(_later(reader, server, 3 * ONE_WAY), _later(answers, writer, 0.0))


def _status_page() -> bytes:
    node = {
        "name": "node",
        "status": "Ready",
        "cpu": {"capacity_cores": 8000, "request_cores": 1000},
        "memory": {"capacity_bytes": 16 * _GI, "request_bytes": _GI},
    }
    metrics = {
        "cpu": {"total_free_cores": 7000, "max_free_on_node_cores": 7000},
        "memory": {"total_free_bytes": 15 * _GI},
    }
    about = {
        "product": "hansa",
        "capabilities": ["delegation-permits", "replica-keys"],
    }  # whatever is asked, this page is the answer
    page = {"cluster": {"nodes_count": 1, "metrics": metrics, "nodes": [node]}, "oscar": {}, "minio": {}, **about}
    body = json.dumps(page).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


async def _status(answers: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    page = _status_page()
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while await reader.readuntil(b"\r\n\r\n"):
            if answers:
                await asyncio.sleep(2 * ONE_WAY)
                writer.write(page)
    writer.close()


async def _serve(orders: Sequence[int | str]) -> None:
    tasks: set[asyncio.Task[None]] = set()
    ports = []
    for order in orders:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, order: int | str = order) -> None:
            serving = (
                _link(order, reader, writer) if isinstance(order, int) else _status(order == "status", reader, writer)
            )
            task = asyncio.create_task(serving, name=f"far {order}")
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps(ports), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in list(tasks):
        task.cancel()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(sys.stdin.readline())))
