"""A hub says who belongs to a federation and where. It cannot make a manager show a person's credentials to anybody who
would not have got them without the hub.
"""

import base64
import contextlib
import re
from collections.abc import Iterator

import pytest

from journeys.hub.members import Sea, eventually, member, membership
from real.gate import gate
from real.hub import a_hub
from real.oscar_like import oscar_like

_LOGIN = {"user": "of-the-hub", "password": "own word"}


@pytest.fixture(scope="module")
def sea() -> Iterator[Sea]:
    with contextlib.ExitStack() as undo:
        hub = undo.enter_context(a_hub())
        lubeck = undo.enter_context(member(hub, "lubeck", **{"jobs.cpu": "100m"}))
        visby = undo.enter_context(member(hub, "visby", **{"jobs.cpu": "250m"}))
        found = Sea(hub, lubeck, visby)
        eventually(found.are_neighbours, "neighbours")
        yield found


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
