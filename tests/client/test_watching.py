"""A stream is read as it comes, taken up where it was cut, and ends with the patience."""

import asyncio
from contextlib import aclosing, closing

import pytest

from client.streams import CHANGE, LATER, SNAPSHOT, streams
from entrypoints.cli.small_server import SmallServer
from hansa.client import AsyncHubClient, HubClient, errors
from hansa.messages.inventory import Change, ClusterInventory, Inventory, Removed


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
