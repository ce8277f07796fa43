"""A load generator that is much cheaper than what it measures: ready-made bytes over kept-alive connections.

Runs in a process of its own (`take_turns` starts it), so that its cost is not the server's. Variants take turns in
short slices; each slice reports how many answers came, how long it took and how much processor time the server used.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

from bench import ROOT


@dataclass(frozen=True, slots=True)
class Variant:
    """One request, sent again and again."""

    name: str
    method: str
    path: str
    expected: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    def raw(self) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.1", "Host: bench"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.method == "POST":
            lines.append(f"Content-Length: {len(self.body.encode())}")
        return ("\r\n".join(lines) + "\r\n\r\n" + self.body).encode()


@dataclass(frozen=True, slots=True)
class Slice:
    answers: int
    seconds: float
    cpu: float  # seconds of the server's processor time

    @property
    def cpu_each(self) -> float:
        return self.cpu / self.answers

    @property
    def per_second(self) -> float:
        return self.answers / self.seconds


def take_turns(
    port: int, pid: int, variants: Sequence[Variant], *, connections: int, rounds: int, seconds: float
) -> dict[str, list[Slice]]:
    """By variant, one slice for each round."""
    order = {
        "port": port,
        "pid": pid,
        "variants": [asdict(variant) for variant in variants],
        "connections": connections,
        "rounds": rounds,
        "seconds": seconds,
    }
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"],
        cwd=ROOT,
        input=json.dumps(order),
        stdout=subprocess.PIPE,
        text=True,
        timeout=60 + 3 * rounds * seconds * len(variants),
        check=True,
    )
    told: dict[str, list[list[float]]] = json.loads(done.stdout)
    return {name: [Slice(int(n), wall, cpu) for n, wall, cpu in slices] for name, slices in told.items()}


class _Connection(asyncio.Protocol):
    """Sends the next request when the last answer is complete."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._buffer = b""
        self._request, self._status = b"", b""
        self._end = 0.0
        self._done: asyncio.Future[int] | None = None
        self._answers = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is one, but does not inherit from it

    def connection_lost(self, error: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(error or ConnectionError("the server closed the connection"))

    def run(self, request: bytes, expected: int, end: float) -> "asyncio.Future[int]":
        """Until `end`; how many answers came."""
        self._request, self._status, self._end, self._answers = request, b"HTTP/1.1 %d" % expected, end, 0
        self._done = asyncio.get_running_loop().create_future()
        self._send()
        return self._done

    def _send(self) -> None:
        assert self._transport is not None
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return
        if len(self._buffer) < head + 4 + _length(self._buffer[:head]):
            return
        assert self._done is not None
        if not self._buffer.startswith(self._status):
            self._done.set_exception(RuntimeError(self._buffer[:300].decode(errors="replace")))
            return
        self._buffer = b""
        self._answers += 1
        if time.perf_counter() < self._end:
            self._send()
        else:
            self._done.set_result(self._answers)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()


def _length(head: bytes) -> int:
    at = head.lower().find(b"content-length:")
    return 0 if at < 0 else int(head[at + 15 :].split(b"\r\n", 1)[0])


def cpu_seconds(pid: int) -> float:
    """Of all threads, to the nanosecond; `stat` counts in hundredths."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


async def _turns(order: Mapping[str, object]) -> dict[str, list[tuple[int, float, float]]]:
    variants = [Variant(**one) for one in order["variants"]]  # type: ignore[attr-defined]
    port, pid, seconds = int(str(order["port"])), int(str(order["pid"])), float(str(order["seconds"]))
    loop = asyncio.get_running_loop()
    count = int(str(order["connections"]))
    connections = [(await loop.create_connection(_Connection, "127.0.0.1", port))[1] for _ in range(count)]
    slices: dict[str, list[tuple[int, float, float]]] = {variant.name: [] for variant in variants}
    for turn in range(int(str(order["rounds"])) + 1):
        for variant in variants:
            cpu, began = cpu_seconds(pid), time.perf_counter()
            end = began + (seconds if turn else min(seconds, 0.2))
            running = [connection.run(variant.raw(), variant.expected, end) for connection in connections]
            answers = sum(await asyncio.gather(*running))
            if turn:  # the first one warms up
                slices[variant.name].append((answers, time.perf_counter() - began, cpu_seconds(pid) - cpu))
    for connection in connections:
        connection.close()
    return slices


if __name__ == "__main__":
    import uvloop

    print(json.dumps(uvloop.run(_turns(json.load(sys.stdin)))))
