"""A member of the federation sends its hub what no honest one would. The others are heard, judged and written down."""

import itertools
import json
from typing import Any

import httpx

from journeys.hub.members import eventually
from real.hub import Hub, StartHub
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
