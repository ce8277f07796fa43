"""A hub says who belongs to a federation and where. It cannot make a manager show a person's credentials to anybody who
would not have got them without the hub.
"""

import base64
import contextlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from journeys.hub.members import Sea, eventually, member, membership
from real.gate import gate
from real.hub import a_hub
from real.listener import Listener, listener
from real.oscar_like import oscar_like

_LOGIN = {"user": "of-the-hub", "password": "own word"}
_HANSA = {"product": "hansa", "capabilities": ["delegation-permits", "mesh-tokens", "replica-keys"]}


@pytest.fixture(scope="module")
def sea() -> Iterator[Sea]:
    with contextlib.ExitStack() as undo:
        hub = undo.enter_context(a_hub())
        lubeck = undo.enter_context(member(hub, "lubeck", **{"jobs.cpu": "100m"}))
        visby = undo.enter_context(member(hub, "visby", **{"jobs.cpu": "250m"}))
        found = Sea(hub, lubeck, visby)
        eventually(found.are_neighbours, "neighbours")
        yield found


def moved(sea: Sea, endpoint: str) -> None:
    answer = sea.hub.admin.put("/v1/clusters/visby/address", json={"endpoint": endpoint, "verify": True})
    assert answer.status_code == 200, answer.text
    known = {"id": "visby", "endpoint": endpoint}.items()
    eventually(lambda: any(known <= one.items() for one in membership(sea.lubeck)["neighbours"]), "told")


def state_of(sea: Sea, name: str) -> dict[str, Any]:
    answer = sea.lubeck.admin.get(f"/system/federation/{name}", params={"state": "true"})
    [state] = answer.json()["state"]
    return dict(state)


def test_a_hub_cannot_lead_credentials_to_an_address_of_its_choice(sea: Sea) -> None:
    """Who answers there is as good a Hansa as any, and only does not know the replica's key."""
    name = "led-astray"
    assert sea.lubeck.admin.post("/system/services", json=sea.federated(name)).status_code == 201
    with listener() as evil:
        replica = f"/v1/replicas/{name}"
        evil.says["/v1/about"] = _HANSA
        refuses_the_key(evil, replica)
        moved(sea, evil.url)
        try:
            looked_after(evil, replica)
            assert shown(evil) <= {"ReplicaKey"}
            assert "only the hub says so" in state_of(sea, name)["trouble"]
            evil.statuses[replica] = 200  # it takes the key, and shows another definition
            evil.says[replica] = {"name": name, "annotations": {}}
            looked_after(evil, replica)
            refuses_the_key(evil, replica)
            assert sea.lubeck.admin.delete(f"/system/services/{name}").status_code in (200, 204)
            assert shown(evil) <= {"ReplicaKey"}
            assert not any(one.body for one in evil.visits), "there are secrets in definitions"
        finally:
            moved(sea, sea.visby.url)


def refuses_the_key(evil: Listener, replica: str) -> None:
    evil.statuses[replica] = 401
    evil.says[replica] = {"type": "/problems/federation.key-refused", "title": "no"}


def looked_after(evil: Listener, replica: str) -> None:
    seen = len(evil.visits)
    eventually(lambda: [one.path for one in evil.visits[seen:]].count(replica) > 3, "several times looked after")


def shown(evil: Listener) -> set[str]:
    return {one.headers.get("authorization", "").partition(" ")[0] for one in evil.visits} - {""}


def test_a_moved_member_goes_on_with_its_jobs_and_its_owner_agrees_to_all_else(sea: Sea) -> None:
    name, definition = "moved-on", sea.federated("moved-on")
    assert sea.lubeck.admin.post("/system/services", json=definition).status_code == 201
    moved(sea, f"http://localhost:{sea.visby.port}")
    assert sea.ended(sea.submit(name))["status"] == "Succeeded"
    assert sea.visby.admin.delete(f"/system/services/{name}").status_code == 204
    eventually(lambda: "only the hub says so" in state_of(sea, name)["trouble"], "noticed")
    assert sea.visby.admin.get(f"/system/services/{name}").status_code == 404
    assert sea.lubeck.admin.put("/system/services", json=definition).status_code in (200, 204)
    assert state_of(sea, name)["in_sync"]
    assert sea.ended(sea.submit(name))["status"] == "Succeeded"
    assert sea.lubeck.admin.delete(f"/system/services/{name}").status_code == 204
    moved(sea, sea.visby.url)


def test_a_hub_cannot_turn_a_member_into_an_oscar(sea: Sea) -> None:
    """It puts somebody in the place of a member who has to be shown the owner's own credentials."""
    name = "turned"
    answer = sea.lubeck.admin.post("/system/services", json=sea.federated(name))
    assert answer.status_code == 201, answer.text
    assert sea.ended(sea.submit(name))["status"] == "Succeeded"
    with oscar_like() as poser, gate(("127.0.0.1", int(poser.url.rsplit(":", 1)[1]))) as ear:
        poser.status = {"cluster": {"nodes_count": 1, "nodes": [], "metrics": {}}}
        ear.overheard = bytearray()
        assert sea.hub.admin.delete("/v1/clusters/visby", params={"force": "true"}).status_code in (200, 202, 204)
        posing = sea.hub.admin.post("/v1/clusters", json={"id": "visby", "endpoint": ear.url, **_LOGIN})
        assert posing.status_code in (200, 201), posing.text
        told = {"id": "visby", "endpoint": ear.url, "kind": "oscar"}

        def believed() -> bool:
            return any(told.items() <= one.items() for one in membership(sea.lubeck)["neighbours"])

        eventually(believed, "told")
        job = sea.submit(name)
        eventually(lambda: "does not answer as one" in sea.story(job)["reason"], "noticed")
        shown = set(re.findall(rb"(?im)^authorization: *(.+?)\r$", bytes(ear.overheard)))
        own = base64.b64encode(f"{_LOGIN['user']}:{_LOGIN['password']}".encode())
        assert shown <= {b"Basic " + own}
        assert sea.visby.password.encode() not in ear.overheard
