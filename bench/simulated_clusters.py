"""Thousands of managers in one process, as their hub sees them: real joins, certificates, heartbeats and watches.

A partner (`bench.partner`) whose orders are the methods of `Managers`: `tokens`, `join`, `connect`, and `listen`, which
tells how heartbeats are answered in the seconds to come. Heartbeats and watches go on meanwhile.

Each manager has its own certificate and two connections over mutual TLS, one for heartbeats and one for the watch. All
share one key, and what they report is taken from a few ready-made texts, so that the hub has more to do than we.
"""

import asyncio
import heapq
import json
import os
import random
import re
import ssl
import sys
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from bench import partner
from bench.lines import LOST, Line, request
from hansa.bootstrap import open_files
from hansa.identity import authority

NODES = 20
_WAIT = 60
_TEXTS = 32  # ready-made reports, so that two that follow each other differ
_JOINS_AT_ONCE, _OPENS_AT_ONCE = 16, 32
_TICK = 0.01
_REGIONS = ("eu-north", "eu-south", "us-east", "us-west", "asia")
_GENERATION = re.compile(rb'"generation":(\d+)')


@dataclass(slots=True)
class Manager:
    index: int
    token: str = ""
    incarnation: int = 0
    chain: str = ""
    number: int = 0
    answered: int = 0
    generation: int = 0
    told: bool = False  # the hub knows which generation is applied here
    whole: bool = True
    waiting: bool = False
    line: Line | None = None
    watch: Line | None = None

    @property
    def id(self) -> str:
        return name(self.index)


def name(index: int) -> str:
    return f"cluster-{index:05}"


@dataclass(slots=True)
class Seen:
    """What happened since somebody last asked."""

    answers: list[float] = field(default_factory=list)  # seconds from a heartbeat to its answer
    lags: list[float] = field(default_factory=list)  # seconds from when it was due to its answer
    skipped: int = 0  # due while the former one was not answered yet
    failed: int = 0
    lost: int = 0
    watches: int = 0


class Managers:
    def __init__(self, order: dict[str, Any]) -> None:
        self._port, self._people = int(order["members_port"]), int(order["port"])
        self._every = float(order["every"])
        self._login = "Authorization: Basic " + b64encode(order["login"].encode()).decode()
        self._asked = authority.new_request("bench")
        self._nodes = [_nodes(turn) for turn in range(_TEXTS)]
        self._totals = [_totals(turn) for turn in range(_TEXTS)]
        self._all: list[Manager] = []
        self._due: list[tuple[float, int]] = []
        self._seen = Seen()
        self._stranger = authority.contexts.for_stranger()
        self._newcomer: ssl.SSLContext | None = None  # one that trusts the hub
        self._member: ssl.SSLContext | None = None  # and shows the certificate it was last given
        self._name = ""

    # Orders.

    async def tokens(self, count: int) -> dict[str, Any]:
        """Managers that can join."""
        first = len(self._all)
        new = [Manager(index) for index in range(first, first + count)]
        lines = [await Line().open(self._people) for _ in range(4)]
        asking = request("POST", "/v1/cluster-tokens", b'{"minutes":120}', self._login)
        began = time.perf_counter()

        async def make(line: Line, some: list[Manager]) -> None:
            for one in some:
                status, body = await line.ask(asking)
                _expect(201, status, body)
                one.token = json.loads(body)["token"]

        await asyncio.gather(*(make(line, new[index :: len(lines)]) for index, line in enumerate(lines)))
        for line in lines:
            line.close()
        self._all += new
        return {"seconds": time.perf_counter() - began}

    async def join(self) -> dict[str, Any]:
        """All that have a token, as the real ones do: look at the roots, then ask over TLS that is verified by them."""
        new = [one for one in self._all if not one.chain]
        began = time.perf_counter()
        await _each(new, self._join, _JOINS_AT_ONCE)
        return {"seconds": time.perf_counter() - began}

    async def _join(self, one: Manager) -> None:
        line = await Line(self._stranger, "hub").open(self._port)
        status, body = await line.ask(request("GET", "/member/v1/roots"))
        _expect(200, status, body)
        line.close()
        if self._newcomer is None:
            found = json.loads(body)
            self._newcomer = authority.contexts.for_member(found["roots"])
            self._member = authority.contexts.for_member(found["roots"])
            self._name = authority.hub_name(found["trust_domain"])
        line = await Line(self._newcomer, self._name).open(self._port)
        facts = {
            "name": one.id,
            "endpoint": f"https://{one.id}.example.org",
            "region": random.choice(_REGIONS),
            "version": "0.1",
        }
        said = {"token": one.token, "cluster": one.id, "request": self._asked.request, "facts": facts}
        status, body = await line.ask(request("POST", "/member/v1/join", json.dumps(said).encode()))
        _expect(200, status, body)
        line.close()
        joined = json.loads(body)
        one.chain, one.incarnation = joined["certificate"], joined["incarnation"]

    async def connect(self) -> dict[str, Any]:
        """All that joined: their two connections, a first heartbeat with everything, and their watch."""
        new = [one for one in self._all if one.line is None]
        began = time.perf_counter()
        await _each(new, self._connect, _OPENS_AT_ONCE)
        return {"seconds": time.perf_counter() - began}

    async def _connect(self, one: Manager) -> None:
        one.number = int(time.time() * 1000)
        one.line = await self._open(one)
        self._beat(one, time.perf_counter())
        one.watch = await self._open(one)
        self._look(one)
        heapq.heappush(self._due, (time.perf_counter() + self._every * random.uniform(0.5, 1.5), one.index))

    async def listen(self, seconds: float) -> dict[str, Any]:
        self._seen = Seen()
        began = time.process_time()
        await asyncio.sleep(seconds)
        return {**asdict(self._seen), "cpu": time.process_time() - began}

    # What goes on by itself.

    async def keep_beating(self) -> None:
        while True:
            now = time.perf_counter()
            while self._due and self._due[0][0] <= now:
                due, index = self._due[0]
                heapq.heapreplace(self._due, (due + self._every, index))
                if self._all[index].waiting:
                    self._seen.skipped += 1
                else:
                    self._beat(self._all[index], due)
            await asyncio.sleep(_TICK)

    async def _open(self, one: Manager) -> Line:
        assert self._member is not None
        _show(self._member, one.chain, self._asked.key)
        return await Line(self._member, self._name).open(self._port)

    def _beat(self, one: Manager, due: float) -> None:
        one.number += 1
        one.waiting = True
        turn = one.number % _TEXTS
        sections = [b'"totals":' + self._totals[turn], b'"nodes":' + self._nodes[turn]]
        if one.whole:
            sections.append(b'"health":{"missing":[]}')
        if one.whole or not one.told:
            sections.append(b'"applied":{"generation":%d}' % one.generation)
            one.told = True
        if one.whole or turn % 2:  # links are measured less often than heartbeats are sent
            sections.append(b'"links":' + self._links(one, turn))
        body = b'{"incarnation":%d,"number":%d,"answered":%d,"sections":{%b},"reports":[],"whole":%b}' % (
            one.incarnation,
            one.number,
            one.answered,
            b",".join(sections),
            b"true" if one.whole else b"false",
        )
        number, sent = one.number, time.perf_counter()

        def heard(status: int, answer: bytes) -> None:
            now = time.perf_counter()
            one.waiting = False
            if status != 200:
                self._failed(one, status, answer)
                return
            self._seen.answers.append(now - sent)
            self._seen.lags.append(now - due)
            one.answered, one.whole = number, b'"whole":true' in answer

        assert one.line is not None
        one.line.send(request("POST", "/member/v1/heartbeat", body), heard)

    def _links(self, one: Manager, turn: int) -> bytes:
        others = ((one.index + step) % len(self._all) for step in (1, 2, 3))
        seen = (
            b'{"target":"%b","up":true,"since":1700000000.0,"latency":0.%03d,"loss":0.0}'
            % (name(other).encode(), 10 + turn)
            for other in others
        )
        return b"[%b]" % b",".join(seen)

    def _look(self, one: Manager) -> None:
        def told(status: int, answer: bytes) -> None:
            self._seen.watches += 1
            if status == 200:
                found = _GENERATION.search(answer)
                assert found is not None
                one.generation, one.told = int(found[1]), False
            elif status != 204:
                self._failed(one, status, answer)
                return
            self._look(one)

        assert one.watch is not None
        one.watch.send(request("GET", f"/member/v1/desired?after={one.generation}&wait={_WAIT}"), told)

    def _failed(self, one: Manager, status: int, answer: bytes) -> None:
        if status == LOST:
            self._seen.lost += 1
        else:
            self._seen.failed += 1
        if self._seen.failed + self._seen.lost <= 3:
            print(f"{one.id}: {status} {answer[:300]!r}", file=sys.stderr)


def _show(context: ssl.SSLContext, chain: str, key: str) -> None:
    """What connections made from now on show."""
    file = os.memfd_create("certificate")
    try:
        os.write(file, (key.strip() + "\n" + chain).encode())
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


async def _each(some: list[Manager], do: Callable[[Manager], Awaitable[None]], at_once: int) -> None:
    left = iter(some)

    async def work() -> None:
        for one in left:
            await do(one)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(work())


def _expect(wanted: int, status: int, body: bytes) -> None:
    if status != wanted:
        raise RuntimeError(f"{status} instead of {wanted}: {body[:500]!r}")


def _nodes(turn: int) -> bytes:
    gi = 2**30
    return json.dumps(
        [
            {
                "name": f"node-{number:02}",
                "ready": True,
                "cpu": 64_000,
                "cpu_used": 1000 * ((turn * 7 + number) % 64),
                "memory": 256 * gi,
                "memory_used": gi * ((turn * 5 + number) % 256),
                "disk": 2000 * gi,
                "disk_used": gi * (500 + turn),
                "gpu": 2,
                "gpu_used": (turn + number) % 3,
            }
            for number in range(NODES)
        ],
        separators=(",", ":"),
    ).encode()


def _totals(turn: int) -> bytes:
    found: dict[str, int] = {"nodes": NODES, "nodes_ready": NODES, "vms": 40, "services": 12}
    for node in json.loads(_nodes(turn)):
        for key, value in node.items():
            if key not in ("name", "ready"):
                found[key] = found.get(key, 0) + value
    found |= {"jobs_running": turn, "jobs_waiting": turn % 5, "storage_used": 2**40 + turn}
    return json.dumps(found, separators=(",", ":")).encode()


async def _main() -> None:
    open_files.allow_most()
    managers = Managers(partner.first_order())
    beating = asyncio.create_task(managers.keep_beating())

    async def do(order: dict[str, Any]) -> dict[str, Any]:
        if beating.done():
            beating.result()
        return dict(await getattr(managers, order.pop("do"))(**order))

    await partner.serve(do)
    beating.cancel()


if __name__ == "__main__":
    import uvloop

    uvloop.run(_main())
