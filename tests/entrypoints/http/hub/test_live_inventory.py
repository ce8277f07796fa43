"""The inventory as a stream over real connections: who reads, who comes back, who goes, who does not read at all."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from entrypoints.http.hub.serving import PATIENCE, Scene, hub_at_home, served, until
from federation.known_clusters import nodes
from hansa.entrypoints.http.hub.event_stream import EventStream
from hansa.messages.clusters import Facts
from hansa.messages.members import Totals
from real.hub import StartHub
from real.simulated_manager import SimulatedManager

Event = tuple[str, str, Any]  # id, kind, data


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with hub_at_home(tmp_path) as opened:
        opened.cluster("lubeck", region="eu")
        opened.cluster("visby", region="us")
        yield opened


async def events(answer: httpx.Response) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            if "data" in fields:
                yield fields["id"], fields["event"], msgspec.json.decode(fields["data"])
            fields = {}


class Reading:
    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.events = events(answer)

    async def next(self) -> Event:
        async with asyncio.timeout(PATIENCE):
            return await anext(self.events)


@contextlib.asynccontextmanager
async def reading(scene: Scene, last_id: str = "", **query: str) -> AsyncIterator[Reading]:
    headers = {"Last-Event-ID": last_id} if last_id else {}
    async with scene.client.stream("GET", "/v1/inventory/stream", params=query, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["cache-control"] == "no-store"
        yield Reading(answer)


async def test_first_all_then_what_changes_and_later_what_was_missed(scene: Scene) -> None:
    async with reading(scene) as reader:
        ident, kind, data = await reader.next()
        assert (kind, [one["id"] for one in data["clusters"]]) == ("snapshot", ["lubeck", "visby"])
        scene.hear("visby", totals={"cpu": 5})
        ident, kind, data = await reader.next()
        assert (kind, data["id"], data["totals"]["cpu"]) == ("cluster", "visby", 5)
    await until(lambda: scene.hub.streams.readers == 0)
    scene.hub.registry.drop("lubeck")
    async with reading(scene, ident) as reader:
        assert (await reader.next())[1:] == ("removed", {"id": "lubeck"})


async def test_only_those_that_are_meant(scene: Scene) -> None:
    async with reading(scene, selector="region=us cpu<1") as reader:
        _, _, data = await reader.next()
        assert [one["id"] for one in data["clusters"]] == ["visby"]
        scene.hear("lubeck", totals={"cpu": 1})
        scene.hear("visby", totals={"cpu": 1000})
        assert (await reader.next())[1:] == ("removed", {"id": "visby"})


async def test_many_readers_and_all_are_let_go_at_the_end(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as readers:
        async with hub_at_home(tmp_path) as scene:
            scene.cluster("lubeck")
            url = f"http://127.0.0.1:{scene.port}"
            client = await readers.enter_async_context(
                httpx.AsyncClient(base_url=url, auth=("admin", "harbour"), timeout=PATIENCE, trust_env=False)
            )
            opened = []
            for _ in range(8):
                answer = await readers.enter_async_context(client.stream("GET", "/v1/inventory/stream"))
                opened.append(Reading(answer))
            for reader in opened:
                assert (await reader.next())[1] == "snapshot"
            assert scene.hub.streams.readers == 8
        for reader in opened:  # the end is a proper one: otherwise httpx would say that the answer was cut off
            with pytest.raises(StopAsyncIteration):
                await reader.next()


async def test_who_does_not_read_is_let_go() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 2**20
        finally:
            ended.set()

    async def app(scope: AsgiScope, receive: Receive, send: Send) -> None:
        await EventStream(endless(), stall=0.2)(scope, receive, send)

    async with served(app) as port:
        with socket.create_connection(("127.0.0.1", port)) as reader:
            reader.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(PATIENCE):
                await ended.wait()
            reader.settimeout(PATIENCE)
            rest = await asyncio.to_thread(_drain, reader)
            assert not rest.endswith(b"0\r\n\r\n")  # cut off: nobody waited until it had taken everything


def _drain(reader: socket.socket) -> bytes:
    """What is still on the way; the last of it."""
    last = b""
    while piece := reader.recv(2**16):
        last = piece
    return last


async def test_an_error_in_the_stream_is_no_end_of_it() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b": begun\n\n"
        raise RuntimeError("boom")

    async def app(scope: AsgiScope, receive: Receive, send: Send) -> None:
        await EventStream(failing())(scope, receive, send)

    async with served(app) as port, httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(f"http://127.0.0.1:{port}/")


async def test_a_real_hub_tells_what_managers_report_and_stops_in_order(start_hub: StartHub) -> None:
    hub = start_hub()
    who = ("admin", hub.password)
    async with (
        httpx.AsyncClient(base_url=hub.url, auth=who, timeout=PATIENCE, trust_env=False) as client,
        client.stream("GET", "/v1/inventory/stream") as answer,
    ):
        reader = Reading(answer)
        assert (await reader.next())[1] == "snapshot"
        async with SimulatedManager("visby", [hub.members_url], Facts(region="eu")) as manager:
            await manager.join(hub.token())
            await manager.beat(totals=Totals(cpu=4000), nodes=nodes(2))
            told: set[str] = set()
            while not told >= {"joined", "totals"}:
                _, kind, data = await reader.next()
                if kind == "change" and data["cluster"] == "visby":
                    told.add(data["kind"])
                elif kind == "cluster" and data["totals"]["cpu"] == 4000:
                    assert (data["id"], data["region"]) == ("visby", "eu")
                    told.add("totals")
        shown = (await client.get("/v1/inventory", params={"nodes": True})).json()
        assert [len(one["nodes"]) for one in shown["clusters"]] == [2]
        assert hub.stop() == 0
        async with asyncio.timeout(PATIENCE):  # a proper end: otherwise httpx would say that it was cut off
            assert "snapshot" not in [kind async for _, kind, _ in reader.events]
    assert "Traceback" not in hub.log
    assert "timeout graceful shutdown exceeded" not in hub.log
