"""A member of the federation sends its hub what no honest one would. The others are heard, judged and written down."""

import itertools
import json
from typing import Any

import httpx

from hansa.messages.members import Report
from journeys.hub.members import eventually
from real.hub import Hub, StartHub
from real.postgres import Database
from real.simulated_manager import SimulatedManager

NO_TEXT = {
    "health": b'{"missing":["\xff"]}',
    "applied": b'{"error":"\xff"}',
    "facts": b'{"name":"\xff"}',
    "links": b'[{"target":"\xff","up":true,"since":1}]',
    "totals": b'{"cpu":1,"\xff":1}',
}


class Evil:
    """A member that writes its heartbeats by hand."""

    def __init__(self, manager: SimulatedManager) -> None:
        self._manager = manager
        self._numbers = itertools.count(1)

    async def beat(self, sections: bytes = b"{}", **more: Any) -> httpx.Response:
        assert self._manager.joined is not None
        head = {"incarnation": self._manager.joined.incarnation, "number": next(self._numbers), **more}
        body = json.dumps(head).encode()[:-1] + b',"sections":' + sections + b"}"
        answer = await self._manager._ask("POST", "heartbeat", 0, content=body)
        assert answer is not None
        return answer


async def joined(hub: Hub, name: str) -> SimulatedManager:
    manager = SimulatedManager(name, [hub.members_url])
    await manager.join(hub.token())
    await manager.beat(totals={"cpu": 1000})
    eventually(lambda: hub.state(name) == "ready", f"{name} is ready")
    return manager


def kept(hub: Hub, cluster: str, kind: str) -> list[str]:
    found = hub.admin.get("/v1/changes", params={"cluster": cluster, "most": 1000}).json()["changes"]
    return [one["detail"] for one in found if one["kind"] == kind]


async def test_text_that_is_no_utf_8_stops_no_hub(start_hub: StartHub) -> None:
    hub = start_hub()
    async with await joined(hub, "good"), await joined(hub, "evil") as manager:
        evil = Evil(manager)
        for name, body in NO_TEXT.items():
            answer = await evil.beat(b'{"%s":%s}' % (name.encode(), body), whole=True)
            assert answer.status_code == 400, name
        eventually(lambda: hub.state("good") == "unreachable", "good is silent, and that is noticed")
        hub.kill()
        hub.start()
        async with await joined(hub, "later"):
            assert hub.admin.delete("/v1/clusters/evil?force=true").status_code == 204


async def test_control_characters_stop_neither_writing_nor_judging(
    start_hub: StartHub, postgres_database: Database
) -> None:
    """PostgreSQL keeps no NUL."""
    hub = start_hub(database=postgres_database.url)
    async with await joined(hub, "good") as good, await joined(hub, "evil") as manager:
        evil = Evil(manager)
        await evil.beat(reports=[{"number": 1, "at": 1, "kind": "x", "detail": "a\0b"}])
        await evil.beat(run="a\0b")
        await evil.beat(b'{"a\\u0000b":1}')
        await evil.beat(b'{"health":{"missing":["a\\u0000b"]},"applied":{"error":"a\\u0000b"}}')
        await good.beat([Report(number=1, at=2.0, kind="y", detail="heard")])
        eventually(lambda: kept(hub, "evil", "x") == ["a\ufffdb"], "what evil reports is written down")
        eventually(lambda: kept(hub, "good", "y") == ["heard"], "what good reports is written down")
        eventually(lambda: hub.state("good") == "unreachable", "good is silent, and that is noticed")
        assert hub.admin.get("/ready").status_code == 200
