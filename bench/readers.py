"""People who look at a hub: some dozen clients over kept-alive connections, each asking something every second.

A partner (`bench.partner`) with one order, `read`: for so many seconds, and then how long each kind of answer took.
"""

import asyncio
import random
import re
import time
from base64 import b64encode
from typing import Any

from bench import partner
from bench.lines import Line, request
from bench.simulated_clusters import name

ONE, LIST, INVENTORY, STATUS = "one cluster", "list", "inventory", "status"
_PATHS = {LIST: "/v1/clusters", INVENTORY: "/v1/inventory", STATUS: "/v1/federation/status"}
_MIX = (ONE,) * 7 + (LIST, INVENTORY, STATUS)
_EVERY = 1.0
_AGE = re.compile(rb'"age":([0-9.]+)')


class Readers:
    def __init__(self, order: dict[str, Any]) -> None:
        self._port, self._clients = int(order["port"]), int(order["clients"])
        self._login = "Authorization: Basic " + b64encode(order["login"].encode()).decode()
        self._clusters = 0
        self._took: dict[str, list[float]] = {}
        self._ages: list[float] = []
        self._failed = 0

    async def read(self, seconds: float, clusters: int) -> dict[str, Any]:
        self._took, self._ages, self._failed, self._clusters = {kind: [] for kind in _MIX}, [], 0, clusters
        lines = [await Line().open(self._port) for _ in range(self._clients)]
        end = time.perf_counter() + seconds
        async with asyncio.TaskGroup() as tasks:
            for number, line in enumerate(lines):
                tasks.create_task(self._one(line, number, end))
        for line in lines:
            line.close()
        return {"took": self._took, "ages": self._ages, "failed": self._failed}

    async def _one(self, line: Line, number: int, end: float) -> None:
        due = time.perf_counter() + _EVERY * random.random()
        turn = number
        while due < end:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            kind = _MIX[turn % len(_MIX)]
            path = _PATHS.get(kind) or f"/v1/clusters/{name(random.randrange(self._clusters))}"
            asked = time.perf_counter()
            status, body = await line.ask(request("GET", path, headers=self._login))
            self._took[kind].append(time.perf_counter() - asked)
            self._failed += status != 200
            if age := _AGE.search(body[:200]):
                self._ages.append(float(age[1]))
            turn += 1
            due = max(due + _EVERY, time.perf_counter())


async def _main() -> None:
    readers = Readers(partner.first_order())

    async def do(order: dict[str, Any]) -> dict[str, Any]:
        return await readers.read(**order)

    await partner.serve(do)


if __name__ == "__main__":
    import uvloop

    uvloop.run(_main())
