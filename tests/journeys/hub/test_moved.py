"""A cluster that has moved asks to be reached elsewhere: nobody hears of it before an admin agrees, then all do."""

from collections.abc import Iterator
from typing import Any

import pytest

from journeys.hub.members import Sea, a_sea, eventually, membership
from real.manager import Manager


@pytest.fixture(scope="module")
def sea() -> Iterator[Sea]:
    with a_sea() as opened:
        yield opened


def restart(manager: Manager, **settings: str) -> None:
    manager.kill()
    manager.settings = {**manager.settings, **settings}
    manager.start()


def told(sea: Sea) -> str:
    return next(str(one["endpoint"]) for one in membership(sea.lubeck)["neighbours"] if one["id"] == "visby")


def asks(sea: Sea, endpoint: str) -> dict[str, Any]:
    return eventually(
        lambda: now if (now := sea.hub.cluster("visby"))["asks_for"] == endpoint else {}, f"asks for {endpoint}"
    )


def decide(sea: Sea, decision: str, endpoint: str) -> tuple[int, dict[str, Any]]:
    answer = sea.hub.admin.post(f"/v1/clusters/visby/address/{decision}", json={"endpoint": endpoint})
    return answer.status_code, answer.json()


def test_a_move_waits_for_an_admin_and_then_all_hear_of_it(sea: Sea) -> None:
    old, new = sea.visby.url, f"http://localhost:{sea.visby.port}"
    restart(sea.visby, **{"cluster.public_url": new, "membership.region": "gotland"})
    seen = asks(sea, new)
    eventually(lambda: sea.hub.state("visby") == "degraded", "degraded")
    words = sea.hub.cluster("visby")["reason"]
    assert words == f"it asks to be reached at {new} instead of {old}: hansa cluster address approve visby, or refuse"
    assert (seen["facts"]["endpoint"], seen["facts"]["region"]) == (old, "gotland")  # the rest needs nobody's consent
    assert told(sea) == old
    assert sea.hub.admin.get("/v1/clusters/visby/status").json()["cluster"]["asks_for"] == new

    status, problem = decide(sea, "approve", "https://visby.example.org")  # somebody looked at something else
    assert (status, problem["type"]) == (409, "/problems/federation.not-asked-for")
    assert decide(sea, "approve", new)[0] == 200
    eventually(lambda: told(sea) == new, "lubeck is told")
    sea.await_state("visby", "ready")
    with sea.service("moved") as name:
        assert sea.ended(sea.submit(name))["status"] == "Succeeded"


def test_a_refusal_sticks(sea: Sea) -> None:
    old = told(sea)
    new = f"http://127.0.0.1:{sea.visby.port}/elsewhere"
    restart(sea.visby, **{"cluster.public_url": new})
    asks(sea, new)
    assert decide(sea, "refuse", new)[0] == 200
    sea.await_state("visby", "ready")
    heard = sea.hub.cluster("visby")["seen"]
    restart(sea.visby)  # it says the same again
    eventually(lambda: sea.hub.cluster("visby")["seen"] > heard + 1, "heard again")
    assert (sea.hub.cluster("visby")["asks_for"], told(sea)) == ("", old)
    assert decide(sea, "approve", new)[0] == 409

    restart(sea.visby, **{"cluster.public_url": f"{new}/else"})  # another one is asked for like any
    asks(sea, f"{new}/else")


def test_an_admin_says_where_it_is(sea: Sea) -> None:
    answer = sea.hub.admin.put("/v1/clusters/visby/address", json={"endpoint": sea.visby.url, "verify": False})
    assert answer.status_code == 200, answer.text
    eventually(lambda: told(sea) == sea.visby.url, "lubeck is told")
    sea.await_state("visby", "ready")
    assert sea.hub.cluster("visby")["facts"]["verify"] is False
    for bad, code in {
        "http://10.0.0.7:8080": "bad-address",
        "https://169.254.169.254": "bad-address",
        f"{sea.lubeck.url}/": "address-taken",
    }.items():
        answer = sea.hub.admin.put("/v1/clusters/visby/address", json={"endpoint": bad})
        assert answer.json()["type"] == f"/problems/federation.{code}", answer.text
    assert told(sea) == sea.visby.url
    anybody = sea.hub.anonymous.put("/v1/clusters/visby/address", json={"endpoint": sea.visby.url})
    assert anybody.status_code == 401
