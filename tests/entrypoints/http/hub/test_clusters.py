"""The story of one cluster at the hub's door: how it is, and what is wanted of it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from entrypoints.http.hub.serving import Scene, hub_at_home
from federation.small_federation import join
from hansa.client import AsyncHubClient, errors
from hansa.messages.clusters import Address, AskedAddress, StatusChange


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with hub_at_home(tmp_path) as opened:
        await join(opened.hub, "lubeck", region="eu")
        yield opened


async def put(scene: Scene, body: Any, status: int = 200, cluster: str = "lubeck") -> Any:
    answer = await scene.client.put(f"/v1/clusters/{cluster}/status", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_what_is_wanted_of_it_is_said_and_shown(scene: Scene) -> None:
    shown = await scene.get("/v1/clusters/lubeck/status")
    assert (shown["state"], shown["wanted"], shown["cordoned"]) == ("ready", "member", False)
    assert {"reason", "since", "seen", "sections"} <= shown.keys()
    drained = await put(scene, {"wanted": "drain"})
    assert (drained["wanted"], drained["cordoned"], drained["cluster"]["cordoned"]) == ("drain", True, True)
    assert await scene.get("/v1/clusters/lubeck/status") == drained
    assert await put(scene, {}) == drained
    closed = await put(scene, {"wanted": "member"})
    assert (closed["wanted"], closed["cordoned"]) == ("member", True)
    assert not (await put(scene, {"cordoned": False}))["cordoned"]
    assert (await put(scene, {"wanted": "leave"}))["wanted"] == "leave"
    changes = (await scene.get("/v1/changes", cluster="lubeck"))["changes"]
    assert [one["kind"] for one in changes][:4] == ["leave", "cordon", "cordon", "drain"]


async def test_what_cannot_be_changes_nothing(scene: Scene) -> None:
    before = await put(scene, {"wanted": "drain"})
    assert (await put(scene, {"cordoned": False}, 409))["type"] == "/problems/federation.wrong-state"
    assert (await put(scene, {"wanted": "drain", "cordoned": False}, 400))["hint"]
    for wrong in ({"wanted": "gone"}, {"wanted": None}, {"cordoned": "yes"}, {"state": "ready"}, ["drain"]):
        assert (await put(scene, wrong, 400))["type"] == "/problems/request.body-invalid"
    assert (await put(scene, {}, 404, "nobody"))["type"] == "/problems/federation.no-such-cluster"
    assert await scene.get("/v1/clusters/lubeck/status") == before


async def test_the_client_says_it_in_one_call(scene: Scene) -> None:
    url = f"http://127.0.0.1:{scene.port}"
    async with AsyncHubClient(url, user="admin", password="harbour") as hub:
        found = await hub.change_cluster_status("lubeck", StatusChange(wanted="drain"))
        assert (found.wanted, found.cordoned, found.cluster.id) == ("drain", True, "lubeck")
        assert await hub.cluster_status("lubeck") == found
        with pytest.raises(errors.Conflict):
            await hub.change_cluster_status("lubeck", StatusChange(cordoned=False))


async def test_an_address_is_said_by_an_admin_in_one_form(scene: Scene) -> None:
    url = f"http://127.0.0.1:{scene.port}"
    async with AsyncHubClient(url, user="admin", password="harbour") as hub:
        found = await hub.change_address("lubeck", Address(endpoint="HTTPS://Lubeck.example:443/", verify=False))
        assert (found.facts.endpoint, found.facts.verify) == ("https://lubeck.example", False)
        with pytest.raises(errors.Invalid):
            await hub.change_address("lubeck", Address(endpoint="http://lubeck.example"))
        for decide in (hub.approve_address, hub.refuse_address):
            with pytest.raises(errors.Conflict):
                await decide("lubeck", AskedAddress(endpoint="https://lubeck.example"))
    where = "/v1/clusters/lubeck/address"
    for wrong in ({}, {"endpoint": 1}, {"endpoint": "https://a.example", "more": 1}, ["https://a.example"]):
        assert (await scene.client.put(where, json=wrong)).status_code == 400
    large = await scene.client.put(where, content=b"x" * 20_000)
    assert large.status_code == 413
    assert (await scene.client.put("/v1/clusters/nobody/address", json={"endpoint": url})).status_code == 404
