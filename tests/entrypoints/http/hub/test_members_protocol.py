"""Heartbeats as bytes on a member's connection: those answered at once, and those that take the long way."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from hansa.entrypoints.http import protocol
from hansa.entrypoints.http.hub import app as applications
from hansa.entrypoints.http.hub.members import Shortcut
from hansa.entrypoints.http.hub.tls import MembersTls
from hansa.entrypoints.http.in_flight import InFlight
from hansa.federation import joining
from hansa.identity import authority
from hansa.messages.members import Join
from real.hub_door import HubDoor, hub_door, served

PATIENCE = 20.0


class Counting(Shortcut):
    """Knows what came the long way."""

    def __init__(self, door: HubDoor) -> None:
        super().__init__(door.app, applications.for_members(door.app), InFlight(2**24))
        self.asked: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.asked.append(scope["path"].rpartition("/")[2])
        await super().__call__(scope, receive, send)


class Wire:
    """One member's connection."""

    def __init__(self, door: HubDoor, long_way: list[str], reader: asyncio.StreamReader, writer: Any) -> None:
        self.hub = door.hub
        self.door = door
        self.long_way = long_way
        self._reader = reader
        self._writer = writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def answer(self, seconds: float = PATIENCE) -> tuple[int, Any, str]:
        """Status, body and head."""
        async with asyncio.timeout(seconds):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
            sizes = [line.partition(":")[2] for line in head.split("\r\n") if line.startswith("content-length:")]
            body = await self._reader.readexactly(int(sizes[0])) if sizes else b""
        return int(head.split()[1]), json.loads(body) if body else None, head

    async def ended(self) -> bool:
        async with asyncio.timeout(PATIENCE):
            return not await self._reader.read(1)


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[Wire]:
    async with hub_door(tmp_path) as door:
        api = Counting(door)
        made = authority.new_request("visby")
        joined = await joining.join(door.hub, Join(token=await door.token(), cluster="visby", request=made.request))
        context = authority.contexts.for_member(joined.roots, joined.certificate, made.key)
        async with (
            served(api, MembersTls(door.hub)) as port,
            _connected(port, context, authority.hub_name(joined.trust_domain)) as (reader, writer),
        ):
            yield Wire(door, api.asked, reader, writer)


@asynccontextmanager
async def _connected(port: int, context: Any, name: str) -> AsyncIterator[tuple[asyncio.StreamReader, Any]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def beat(number: int, *headers: str, incarnation: int = 1, pad: int = 0) -> bytes:
    said = {"totals": {"cpu": number}, "more": "x" * pad}
    body = json.dumps({"incarnation": incarnation, "number": number, "sections": said, "whole": True}).encode()
    lines = ["POST /member/v1/heartbeat HTTP/1.1", "Host: hub", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


WATCH = b"GET /member/v1/desired?after=0 HTTP/1.1\r\nHost: hub\r\n\r\n"


def cpu(wire: Wire) -> int:
    known = wire.hub.registry.get("visby")
    assert known is not None
    return known.totals.cpu


async def test_a_heartbeat_is_answered_where_it_comes_in(wire: Wire) -> None:
    for number in (1, 2, 3):
        wire.send(beat(number))
        status, told, head = await wire.answer()
        assert (status, told["number"], cpu(wire)) == (200, number, number)
        assert "content-type: application/json" in head
        assert "\r\ndate: " in head
    assert wire.long_way == []


async def test_one_that_comes_in_two_parts_is_answered_so_too(wire: Wire) -> None:
    whole = beat(7)
    split = whole.index(b"\r\n\r\n") + 4
    wire.send(whole[:split])
    await asyncio.sleep(0.05)  # so that the hub sees them apart; where it does not, less is shown
    wire.send(whole[split:])
    assert (await wire.answer())[1]["number"] == 7
    assert wire.long_way == []


async def test_what_is_asked_together_is_answered_in_order(wire: Wire) -> None:
    wire.send(beat(1) + beat(2) + WATCH + beat(3) + WATCH)
    assert [(await wire.answer())[1].get("number") for _ in range(5)] == [1, 2, None, 3, None]
    wire.send(beat(4))
    assert (await wire.answer())[1]["number"] == 4
    assert wire.long_way == ["desired", "heartbeat", "desired"], "nothing overtakes a watch"


@pytest.mark.parametrize(("incarnation", "move"), [(2, 0), (1, 24 * 365)])
async def test_one_that_is_refused_is_told_why(wire: Wire, incarnation: int, move: int) -> None:
    wire.door.move(move)
    wire.send(beat(1, incarnation=incarnation))
    found, told, head = await wire.answer()
    assert (found, wire.long_way) == (403, ["heartbeat"])
    assert "application/problem+json" in head
    assert told["detail"]


async def test_a_long_one_takes_the_long_way(wire: Wire) -> None:
    wire.send(beat(5, pad=200_000))
    assert (await wire.answer())[1]["number"] == 5
    assert wire.long_way == ["heartbeat"]


async def test_who_asks_first_whether_to_send_it(wire: Wire) -> None:
    whole = beat(6, "Expect: 100-continue")
    split = whole.index(b"\r\n\r\n") + 4
    wire.send(whole[:split])
    assert (await wire.answer())[0] == 100
    wire.send(whole[split:])
    assert (await wire.answer())[1]["number"] == 6


async def test_who_says_good_bye_is_let_go(wire: Wire) -> None:
    wire.send(beat(8, "Connection: close"))
    assert (await wire.answer())[1]["number"] == 8
    assert await wire.ended()


async def test_one_whose_rest_comes_late_is_waited_for(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
    whole = beat(9)
    wire.send(whole[:-10])
    await asyncio.sleep(1)  # then it goes the long way, which has time for slow bodies
    wire.send(whole[-10:])
    assert (await wire.answer())[1]["number"] == 9
    assert wire.long_way == ["heartbeat"]
