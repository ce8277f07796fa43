"""What a type checker knows of the client is what it does: `make check` reads this file, and the test runs it."""

from collections.abc import AsyncGenerator, Generator
from typing import assert_type

import pytest

from entrypoints.cli.small_server import SmallServer
from hansa.client import AsyncHubClient, HubClient
from hansa.messages.clusters import NewToken, Token
from hansa.messages.inventory import Change, Clusters, InventoryEvent

NOBODY = {"age": 0, "clusters": []}


def page(*ids: int) -> dict[str, object]:
    return {"changes": [{"id": one, "at": 1, "cluster": "lubeck", "kind": "state", "detail": ""} for one in ids]}


def test_waiting(server: SmallServer) -> None:
    server.on("GET /v1/clusters", NOBODY).on("DELETE /v1/clusters/x", status=204)
    with HubClient(server.url) as hub:
        assert_type(hub.clusters(selector="a=b"), Clusters)
        assert_type(hub.remove_cluster("x", force=True), None)
        assert_type(hub.watch_inventory(), Generator[InventoryEvent, None, None])
        with pytest.raises(TypeError):
            hub.clusters("a=b")  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            hub.clusters(colour="blue")  # type: ignore[call-arg]
        assert hub.clusters.__doc__ == HubClient.clusters.__doc__
        assert hub.clusters.__name__ == "clusters"


async def test_awaited(server: SmallServer) -> None:
    server.on("GET /v1/clusters", NOBODY)
    server.on("POST /v1/cluster-tokens", {"id": "t", "expires": 1, "approve": True}, status=201)
    async with AsyncHubClient(server.url) as hub:
        assert_type(await hub.clusters(), Clusters)
        assert_type(await hub.create_token(NewToken(minutes=5)), Token)
        assert_type(hub.watch_inventory(), AsyncGenerator[InventoryEvent, None])
        assert_type(hub.all_changes(), AsyncGenerator[Change, None])


async def test_pages_are_asked_for_as_they_are_needed(server: SmallServer) -> None:
    for _ in range(2):
        for ids in ((9, 8), (5,), ()):
            server.on("GET /v1/changes", page(*ids))
    with HubClient(server.url) as hub:
        pages = hub.all_changes(cluster="lubeck", page=2)
        assert next(pages).id == 9
        assert [seen.query for seen in server.seen] == [{"cluster": "lubeck", "most": "2"}]
        assert [one.id for one in pages] == [8, 5]
    async with AsyncHubClient(server.url) as other:
        assert [one.id async for one in other.all_changes(page=2)] == [9, 8, 5]
    assert [seen.query.get("before") for seen in server.seen] == [None, "8", "5"] * 2
