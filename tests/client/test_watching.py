"""A stream is read as it comes, taken up where it was cut, and ends with the patience."""

import asyncio
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import aclosing, closing, contextmanager, suppress

import pytest

from entrypoints.cli.small_server import SmallServer
from hansa.client import AsyncHubClient, HubClient, errors
from hansa.messages.inventory import Change, ClusterInventory, Inventory, Removed

PART = b'{"id":"lubeck","kind":"hansa","state":"ready","region":"eu","zone":"","seen":1.0,"totals":{"cpu":4000}}'
SNAPSHOT = b'id: a-1\nevent: snapshot\ndata: {"at":1,"age":0,"clusters":[%b],"regions":{},"total":{}}\n\n' % PART
CHANGE = b'id: a-4\nevent: change\ndata: {"id":7,"at":1,"cluster":"lubeck","kind":"state","detail":"why"}\n\n'
LATER = (
    b"id: a-2\nevent: cluster\ndata: %b\n\n: still here\n\n" % PART
    + b'id: a-3\nevent: of-a-newer-hub\ndata: ?\n\nid: a-3\nevent: removed\ndata: {"id":"lubeck"}\n\n'
    + CHANGE
)


@contextmanager
def streams(*said: bytes) -> Iterator[tuple[str, list[str]]]:
    """Answers each call with one of these, then cuts it; gives the address, and where each caller wanted to go on."""
    wanted: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            listener.settimeout(20)
            for one in said:
                with suppress(OSError):
                    link, _ = listener.accept()
                    with link:
                        asked = link.recv(65536)
                        found = re.search(rb"last-event-id: (\S+)", asked, re.IGNORECASE)
                        wanted.append(found[1].decode() if found else "")
                        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
                        link.sendall(one)
            listener.close()  # whoever comes now is refused

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", wanted
        finally:
            thread.join(25)


def heard(url: str, count: int, awaited: bool) -> list[object]:
    found: list[object] = []
    if not awaited:
        with HubClient(url) as hub, closing(hub.watch_inventory()) as told:
            for event in told:
                found.append(event)
                if len(found) == count:
                    break
        return found

    async def listen() -> None:
        async with AsyncHubClient(url) as hub, aclosing(hub.watch_inventory()) as told:
            async for event in told:
                found.append(event)
                if len(found) == count:
                    break

    asyncio.run(listen())
    return found


@pytest.mark.parametrize("awaited", [False, True])
def test_a_cut_stream_goes_on(awaited: bool) -> None:
    with streams(SNAPSHOT, LATER, CHANGE) as (url, wanted):
        found = heard(url, 5, awaited)
    assert [type(one) for one in found] == [Inventory, ClusterInventory, Removed, Change, Change]
    assert wanted == ["", "a-1", "a-4"]
    assert isinstance(found[0], Inventory)
    assert found[0].clusters[0].totals.cpu == 4000


@pytest.mark.parametrize("awaited", [False, True])
def test_a_hub_that_stays_away_ends_it(awaited: bool) -> None:
    with streams(SNAPSHOT) as (url, wanted), pytest.raises(errors.Unreachable):
        heard(url, -1, awaited)
    assert wanted == [""]


def test_what_is_no_stream(server: SmallServer) -> None:
    server.on("GET /v1/inventory/stream", b"{}", Content_Type="application/json")
    with HubClient(server.url) as hub, pytest.raises(errors.Unexpected, match="no stream"):
        next(hub.watch_inventory())
    server.on("GET /v1/inventory/stream", {"detail": "no such key"}, status=400)
    with HubClient(server.url) as hub:
        with pytest.raises(errors.Unexpected):
            next(hub.watch_inventory())  # the server gives its answers in turn
        with pytest.raises(errors.Invalid, match="no such key"):
            next(hub.watch_inventory(selector="x"))
