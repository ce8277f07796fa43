"""Heartbeats and watches as managers send them: whole or in pieces, too large, too long, and with much to tell."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Message

from federation.known_clusters import record
from hansa.entrypoints.http.hub import app as applications
from hansa.entrypoints.http.hub import tls
from hansa.federation import joining
from hansa.identity import authority
from hansa.messages.members import Desired, Join
from real.hub_door import HubDoor, hub_door

_END = "-----END CERTIFICATE-----"
SNI = {"sni_hostname": "hub.hansa"}
BEAT = b'{"incarnation":1,"number":1,"sections":{"totals":{"cpu":8}},"whole":true}'


class Line:
    """Of one member."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def beat(self, content: Any) -> httpx.Response:
        return await self._client.post("/heartbeat", content=content, extensions=SNI)

    async def watch(self, **asked: Any) -> httpx.Response:
        return await self._client.get("/desired", params=asked, extensions=SNI)


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[HubDoor]:
    async with hub_door(tmp_path) as opened:
        yield opened


@pytest.fixture
async def line(door: HubDoor) -> AsyncIterator[Line]:
    made = authority.new_request("visby")
    joined = await joining.join(door.hub, Join(token=await door.token(), cluster="visby", request=made.request))
    context = authority.contexts.for_member(joined.roots, joined.certificate, made.key)
    async with httpx.AsyncClient(
        base_url=f"{door.members}/member/v1", verify=context, trust_env=False, timeout=20
    ) as client:
        yield Line(client)


async def test_a_heartbeat_that_comes_in_pieces(door: HubDoor, line: Line) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(BEAT), 20):
            yield BEAT[start : start + 20]
            await asyncio.sleep(0)  # each is sent for itself

    answer = await line.beat(pieces())
    assert (answer.status_code, answer.json()["number"]) == (200, 1), answer.text
    known = door.hub.registry.get("visby")
    assert known is not None
    assert known.totals.cpu == 8


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"{" + b" " * 9 * 2**20, 413, "request.too-large"),
        (b"not json", 400, "request.body-invalid"),
        (b'{"incarnation":1}', 400, "request.body-invalid"),
        (b'{"incarnation":2,"number":1}', 403, "federation.not-a-member"),
        (b'{"incarnation":1,"number":1,"sections":{"health":{"missing":["\xff"]}}}', 400, "request.invalid"),
    ],
)
async def test_a_heartbeat_that_is_not_taken(line: Line, content: bytes, status: int, code: str) -> None:
    refused = await line.beat(content)
    assert refused.headers["content-type"] == "application/problem+json"
    assert (refused.status_code, refused.json()["type"]) == (status, f"/problems/{code}")
    assert (await line.beat(BEAT)).status_code == 200


class Direct:
    """Heartbeats of one member that are all there when the application is called, so that it waits for nothing."""

    def __init__(self, door: HubDoor, certificate: str) -> None:
        self._api = applications.for_members(door.app)
        shown = authority.presented(ssl.PEM_cert_to_DER_cert(certificate[: certificate.index(_END) + len(_END)]))
        self._scope = {
            "type": "http",
            "method": "POST",
            "path": "/member/v1/heartbeat",
            "query_string": b"",
            "headers": [],
            "client": ("127.0.0.1", 1),
            "extensions": {tls.EXTENSION: shown},
        }
        self.turns = 0
        self.answered: list[tuple[str, int, int]] = []  # which, its status, and in how many turns of the loop

    async def beat(self, name: str, body: bytes) -> None:
        begun = 0

        async def receive() -> Message:
            nonlocal begun
            begun = self.turns
            return {"type": "http.request", "body": body}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answered.append((name, message["status"], self.turns - begun))

        await self._api(dict(self._scope), receive, send)

    async def count(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


def large(number: int, links: int) -> bytes:
    said = b",".join(b'{"target":"t%d","up":true,"since":1}' % one for one in range(links))
    return b'{"incarnation":1,"number":%d,"sections":{"links":[%b]}}' % (number, said)


async def test_large_heartbeats_are_read_aside_and_one_after_the_other(door: HubDoor) -> None:
    made = authority.new_request("visby")
    joined = await joining.join(door.hub, Join(token=await door.token(), cluster="visby", request=made.request))
    direct = Direct(door, joined.certificate)
    counting = asyncio.create_task(direct.count())
    try:
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            tasks.create_task(direct.beat("larger", large(1, 50_000)))
            tasks.create_task(direct.beat("large", large(2, 3_000)))
    finally:
        counting.cancel()
    assert [(name, status) for name, status, _ in direct.answered] == [("larger", 200), ("large", 200)]
    assert all(turns for *_, turns in direct.answered)  # others had theirs meanwhile
    assert not direct._api._large  # type: ignore[attr-defined]


async def test_a_watch_tells_of_thousands_of_neighbours(door: HubDoor, line: Line) -> None:
    """More than is sent at once."""
    for number in range(2000):
        door.hub.directory.learn(record(f"cluster-{number}", version=1))
    answer = await line.watch(after=0)
    told = answer.json()
    assert len(answer.content) > 100_000
    assert {one["id"] for one in told["neighbours"]} == {f"cluster-{number}" for number in range(2000)}
    assert set(told) <= set(Desired.__struct_fields__)
    assert (await line.watch(after=told["generation"])).status_code == 204


@pytest.mark.parametrize("asked", [{"after": "x"}, {"after": -1}, {"wait": 61}, {"wait": "nan"}, {"after": 2**63}])
async def test_a_watch_that_asks_for_nonsense(line: Line, asked: dict[str, Any]) -> None:
    refused = await line.watch(**asked)
    assert (refused.status_code, refused.json()["type"]) == (400, "/problems/request.invalid")
