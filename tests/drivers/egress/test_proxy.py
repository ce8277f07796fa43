"""A program behind the proxy gets where the door lets it, and nowhere else."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from drivers.egress.conftest import Names, Trap, trap
from hansa.drivers.egress import Door, Proxy, Rule


@asynccontextmanager
async def proxied(door: Door, fixed: tuple[str, int] | None = None) -> AsyncIterator[tuple[int, list[str]]]:
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    port = listening.getsockname()[1]
    async with Proxy(door).serve(listening, fixed) as refused:
        yield port, refused
    await door.close()


async def said(port: int, *parts: bytes) -> bytes:
    """What the proxy answers until it closes, or says nothing more for a moment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    heard = b""
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            async with asyncio.timeout(10):
                heard += await reader.read(65536)
        return heard
    finally:
        writer.close()


GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


async def test_connect_leads_to_what_the_door_dials(listening: Trap, names: type[Names]) -> None:
    door = Door(Rule.of(["127.0.0.1"]), resolve=names(good_test=[["127.0.0.1"]]))
    async with proxied(door) as (port, refused):
        connect = f"CONNECT good.test:{listening.port} HTTP/1.1\r\nhost: good.test\r\n\r\n".encode()
        heard = await said(port, connect, GET)
    assert heard.startswith(b"HTTP/1.1 200 Connected\r\n\r\n")
    assert heard.endswith(b"ok")
    assert listening.heard == [GET]
    assert refused == []


async def test_plain_http_is_one_request_to_one_server(listening: Trap, names: type[Names]) -> None:
    door = Door(Rule.of(["127.0.0.1"]), resolve=names(good_test=[["127.0.0.1"]]))
    asked = f"GET http://good.test:{listening.port}/v2/?a=b HTTP/1.1\r\nHost: good.test\r\nProxy-Connection: keep-alive\r\n\r\n"  # noqa: E501
    async with proxied(door) as (port, _):
        assert (await said(port, asked.encode())).endswith(b"ok")
    head = listening.heard[0].decode().lower()
    assert head.startswith("get /v2/?a=b http/1.1\r\n")
    assert "connection: close" in head
    assert "proxy" not in head


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "0x7f.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "rebinding.test", "169.254.169.254"]
)
async def test_what_the_door_refuses_is_not_called(listening: Trap, names: type[Names], host: str) -> None:
    door = Door(Rule(), resolve=names(rebinding_test=[["127.0.0.1"]]))
    async with proxied(door) as (port, refused):
        for asked in (
            f"CONNECT {host}:{listening.port} HTTP/1.1\r\n\r\n",
            f"GET http://{host}:{listening.port}/ HTTP/1.1\r\n\r\n",
        ):
            assert (await said(port, asked.encode())).startswith(b"HTTP/1.1 403")
        assert len(refused) == 2
    assert listening.calls == 0


@pytest.mark.parametrize(
    "asked",
    ["GET / HTTP/1.1\r\n\r\n", "nonsense\r\n\r\n", "CONNECT x HTTP/1.1\r\n\r\n", "CONNECT u@x:80 HTTP/1.1\r\n\r\n",
     "GET https://x.test/ HTTP/1.1\r\n\r\n", "GET ftp://x.test/ HTTP/1.1\r\n\r\n", "CONNECT  HTTP/1.1\r\n\r\n",
     "GET http://u:p@x.test/ HTTP/1.1\r\n\r\n", "CONNECT x:0 HTTP/1.1\r\n\r\n"],
)  # fmt: skip
async def test_what_is_no_request_to_a_proxy_is_refused(asked: str) -> None:
    async with proxied(Door(Rule())) as (port, _):
        assert (await said(port, asked.encode())).startswith(b"HTTP/1.1 400")


async def test_an_endless_head_is_refused() -> None:
    async with proxied(Door(Rule())) as (port, _):
        assert (await said(port, b"CONNECT " + b"x" * 100_000)).startswith(b"HTTP/1.1 400")


async def test_a_fixed_target_is_judged_too(listening: Trap) -> None:
    async with proxied(Door(Rule.of(["127.0.0.1"])), ("127.0.0.1", listening.port)) as (port, _):
        assert (await said(port, GET)).endswith(b"ok")
    async with trap() as other, proxied(Door(Rule()), ("127.0.0.1", other.port)) as (port, refused):
        assert (await said(port, GET)).startswith(b"HTTP/1.1 403")
        assert refused
        assert other.calls == 0
