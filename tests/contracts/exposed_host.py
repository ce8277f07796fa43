"""What every engine must do for long-lived services: the suite for `ExposedHost`.

A driver's test module subclasses it and offers the fixture `host`. The services are small web servers that every
machine with Python 3 at /usr/bin/python3 can run.
"""

import asyncio
import textwrap
from collections.abc import Sequence
from typing import Any

import pytest

from contracts.orders import order
from hansa.kernel.errors import Temporary
from hansa.services import Deployment, ExposedHost, LogLine, RunOrder
from hansa.services.service import Expose

PATIENCE = 20.0
ADDRESS = "127.0.0.1"  # where the servers listen; an engine may need another

_SERVER = """
exec /usr/bin/python3 -S - <<'PROGRAM'
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die": os._exit(9)
        status = 500 if self.path == "/sick" else 200
        self.send_response(status); self.end_headers(); self.wfile.write({answer})
    def log_message(self, *what): pass
print("listening", flush=True)
http.server.ThreadingHTTPServer(("{address}", {port}), Handler).serve_forever()
PROGRAM
"""


def server(answer: str, *, port: int = 80, before: str = "", health: str = "/", **more: Any) -> RunOrder:
    """A service that answers every GET with `answer`, dies on /die and is sick on /sick."""
    script = before + _SERVER.replace("{answer}", repr(answer.encode())).replace("{port}", str(port))
    script = script.replace("{address}", ADDRESS)
    scale = more.pop("scale", 1)
    expose = Expose(api_port=(port,), min_scale=scale, health_path=health)
    return order(textwrap.dedent(script), expose=expose, **more)


async def ask(host: ExposedHost, path: str = "/", name: str = "tool") -> bytes:
    """The body of the answer; b"" if the service hangs up."""
    connection = await host.connect(name)
    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        answer = await reader.read()
    finally:
        writer.close()
    return answer.partition(b"\r\n\r\n")[2]


async def until_state(host: ExposedHost, state: str, name: str = "tool") -> Deployment:
    seen = None
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                seen = host.deployment(name)
                if seen is not None and seen.state == state:
                    return seen
                await asyncio.sleep(0.02)
    except TimeoutError:
        log = "\n".join(line.text for line in host.log(name, 50))
        pytest.fail(f"not {state} but {seen}; log:\n{log}")


async def printed(host: ExposedHost, count: int = 1) -> Sequence[LogLine]:
    """What it printed, once that is so many lines: they may take another way than its answers."""
    async with asyncio.timeout(PATIENCE):
        while len(lines := host.log("tool", 10)) < count:
            await asyncio.sleep(0.02)
    return lines


class ExposedHostContract:
    async def test_it_becomes_ready_and_answers(self, host: ExposedHost) -> None:
        await host.apply(server("hello"), running=True)
        seen = await until_state(host, "ready")
        assert (seen.active, seen.affected, seen.kind) == (1, 0, "exposed_service")
        assert seen.since is not None
        assert await ask(host) == b"hello"
        (line,) = await printed(host)
        assert line.text == "listening"
        assert line.at > 1_700_000_000

    async def test_applying_the_same_again_changes_nothing(self, host: ExposedHost) -> None:
        script = "cat /proc/sys/kernel/random/uuid\n"
        await host.apply(server("hello", before=script), running=True)
        await until_state(host, "ready")
        before = await printed(host, 2)
        await host.apply(server("hello", before=script), running=True)
        await asyncio.sleep(0.3)
        assert host.log("tool", 10) == before

    async def test_stopped_started_and_removed(self, host: ExposedHost) -> None:
        await host.apply(server("hello"), running=True)
        await until_state(host, "ready")
        await host.apply(server("hello"), running=False)
        seen = await until_state(host, "stopped")
        assert (seen.active, seen.affected) == (0, 0)
        with pytest.raises(Temporary):
            await host.connect("tool")
        await host.apply(server("hello"), running=True)
        await until_state(host, "ready")
        assert await ask(host) == b"hello"
        await host.remove("tool")
        await host.remove("tool")
        assert host.deployment("tool") is None
        assert host.log("tool", 10) == ()
        with pytest.raises(Temporary):
            await host.connect("tool")

    async def test_a_new_definition_takes_over_without_a_gap(self, host: ExposedHost) -> None:
        await host.apply(server("old"), running=True)
        await until_state(host, "ready")
        await host.apply(server("new"), running=True)
        answers = set()
        async with asyncio.timeout(PATIENCE):
            while (answer := await ask(host)) != b"new":
                answers.add(answer)
                await asyncio.sleep(0.01)
        assert answers <= {b"old"}, "every call was answered"
        await until_state(host, "ready")

    async def test_restart_starts_it_anew(self, host: ExposedHost) -> None:
        script = "cat /proc/sys/kernel/random/uuid\n"
        await host.apply(server("hello", before=script), running=True)
        await until_state(host, "ready")
        first = (await printed(host, 2))[0]
        await host.restart("tool")
        async with asyncio.timeout(PATIENCE):
            while sum(line.text == "listening" for line in host.log("tool", 20)) < 2:
                await asyncio.sleep(0.02)
        await until_state(host, "ready")
        assert await ask(host) == b"hello"
        assert first in host.log("tool", 20)

    async def test_a_crash_is_seen_and_healed(self, host: ExposedHost) -> None:
        await host.apply(server("hello"), running=True)
        await until_state(host, "ready")
        await ask(host, "/die")
        seen = await until_state(host, "failed")
        assert seen.reason.startswith("exit code 9")
        assert (seen.active, seen.affected) == (0, 1)
        await until_state(host, "ready")
        assert await ask(host) == b"hello"

    async def test_instances_take_turns(self, host: ExposedHost) -> None:
        order = server("hello", before="export ME=$$\n", scale=2)
        await host.apply(order, running=True)
        assert (await until_state(host, "ready")).active == 2
        for _ in range(4):
            assert await ask(host) == b"hello"
        await ask(host, "/die")
        degraded = await until_state(host, "degraded")
        assert (degraded.active, degraded.affected) == (1, 1)
        assert await ask(host) == b"hello"
        await until_state(host, "ready")

    async def test_one_that_answers_with_errors_is_not_ready(self, host: ExposedHost) -> None:
        await host.apply(server("hello", health="/sick"), running=True)
        await asyncio.sleep(1)
        seen = host.deployment("tool")
        assert seen is not None
        assert seen.state == "pending"
        with pytest.raises(Temporary):
            await host.connect("tool")

    async def test_without_a_health_path_listening_is_enough(self, host: ExposedHost) -> None:
        await host.apply(server("hello", health="", port=8080), running=True)
        await until_state(host, "ready")
        assert await ask(host) == b"hello"
