"""`/v1/cluster-tokens`, `/v1/authority`, `…/approve`: who may, and what is shown. What they do: tests/federation."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from hansa.federation import joining, rotation
from hansa.identity import authority
from hansa.messages.members import Join
from real.hub_door import PASSWORD, HubDoor, hub_door


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[HubDoor]:
    async with hub_door(tmp_path, lease_seconds=1.0, sync_every=0.01) as opened:
        yield opened


@pytest.fixture
async def admin(door: HubDoor) -> AsyncIterator[httpx.AsyncClient]:
    auth = httpx.BasicAuth("admin", PASSWORD)
    async with httpx.AsyncClient(base_url=door.people, auth=auth, trust_env=False, timeout=20) as client:
        yield client


async def test_tokens_are_shown_once(door: HubDoor, admin: httpx.AsyncClient) -> None:
    made = await admin.post("/v1/cluster-tokens", json={"cluster": "visby", "minutes": 5})
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    token = made.json()
    assert token["token"].startswith(f"hansa1.{token['id']}.")
    (listed,) = (await admin.get("/v1/cluster-tokens")).json()
    assert listed == {**token, "token": "", "hub": listed["hub"]}
    assert (await admin.delete(f"/v1/cluster-tokens/{token['id']}")).status_code == 204
    assert (await admin.delete(f"/v1/cluster-tokens/{token['id']}")).json()["type"] == (
        "/problems/federation.no-such-token"
    )
    assert (await admin.get("/v1/cluster-tokens")).json() == []
    for bad in ({"minuets": 5}, {"minutes": "x"}, {"minutes": -1}, {"cluster": "No Name"}):
        assert (await admin.post("/v1/cluster-tokens", json=bad)).status_code == 400, bad


async def test_without_credentials_nothing(door: HubDoor) -> None:
    async with httpx.AsyncClient(base_url=door.people, trust_env=False, timeout=20) as nobody:
        for method, path in (
            ("GET", "/v1/cluster-tokens"),
            ("POST", "/v1/cluster-tokens"),
            ("DELETE", "/v1/cluster-tokens/x"),
            ("GET", "/v1/authority"),
            ("POST", "/v1/authority/rotate"),
            ("DELETE", "/v1/authority/x"),
            ("POST", "/v1/clusters/visby/approve"),
        ):
            assert (await nobody.request(method, path, json={})).status_code == 401, path


async def test_approval(door: HubDoor, admin: httpx.AsyncClient) -> None:
    said = Join(token=await door.token(approve=False), cluster="visby", request=authority.new_request("visby").request)
    await joining.join(door.hub, said)
    assert (await admin.get("/v1/clusters/visby")).json()["state"] == "pending"
    assert (await admin.post("/v1/clusters/visby/approve")).json()["state"] == "ready"
    assert (await admin.post("/v1/clusters/nobody/approve")).status_code == 404


async def test_a_root_from_beginning_to_end(door: HubDoor, admin: httpx.AsyncClient) -> None:
    """By hand, turn by turn: what the loop does by itself is shown in tests/journeys/hub."""
    (first,) = (await admin.get("/v1/authority")).json()["roots"]
    assert (first["state"], first["holders"]) == ("active", 0)
    asked = await admin.post("/v1/authority/rotate")
    assert asked.status_code == 202
    assert [one["state"] for one in asked.json()["roots"]] == ["active", "next"]
    assert (await admin.post("/v1/authority/rotate")).status_code == 409
    assert "PRIVATE" not in asked.text
    fence = await door.fence()
    await rotation.turn(door.hub, fence)
    assert await states(admin) == ["active", "next"]  # too soon
    door.move(hours=0.1)
    await rotation.turn(door.hub, fence)
    assert await states(admin) == ["active", "retiring"]
    assert (await admin.delete(f"/v1/authority/{door.hub.trust.active.id}")).status_code == 409
    assert (await admin.delete("/v1/authority/nothing")).status_code == 404
    dropped = await admin.delete(f"/v1/authority/{first['id']}")  # as after the theft of its key
    assert dropped.status_code == 200
    assert await states(admin) == ["active", "gone"]
    assert (await admin.delete(f"/v1/authority/{first['id']}")).status_code == 404
    assert door.hub.trust.roots == door.hub.trust.active.certificate
    (gone,) = [one for one in door.hub.trust.all if one.state == "gone"]
    assert gone.root.key == ""


async def test_a_root_near_its_end_is_followed_by_itself(door: HubDoor, admin: httpx.AsyncClient) -> None:
    door.move(hours=365 * 24 * 0.76)
    await rotation.turn(door.hub, await door.fence())
    assert await states(admin) == ["active", "next"]


async def states(admin: httpx.AsyncClient) -> list[str]:
    return sorted(one["state"] for one in (await admin.get("/v1/authority")).json()["roots"])
