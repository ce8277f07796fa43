"""Somebody has a copy of a member's key file. It cannot lead others astray, nor silence the member, nor stay unseen."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from journeys.hub.members import Sea, a_sea, eventually, membership
from real.stolen_key import Thief

EVIL = "http://evil.example:8080"
HUGE = 2**62


@pytest.fixture(scope="module")
def sea() -> Iterator[Sea]:
    with a_sea() as opened:
        yield opened


@pytest.fixture
def thief(sea: Sea) -> Iterator[Thief]:
    """Of visby's key, while visby goes on; afterwards visby has joined again, and the key is worth nothing."""
    with contextlib.closing(Thief.of(sea.visby)) as found:
        yield found
    sea.visby.admin.delete("/v1/membership", params={"force": "true"})
    token = sea.hub.token(cluster="visby")
    assert sea.visby.admin.post("/v1/membership", json={"hub": sea.hub.members_url, "token": token}).status_code == 200
    sea.await_state("visby", "ready")
    eventually(sea.are_neighbours, "neighbours again")


def facts(sea: Sea, **changed: Any) -> dict[str, Any]:
    return {**sea.hub.cluster("visby")["facts"], **changed}


def told(sea: Sea) -> dict[str, tuple[str, bool]]:
    """What lubeck was told of the others."""
    return {one["id"]: (one["endpoint"], one["verify"]) for one in membership(sea.lubeck)["neighbours"]}


def history(sea: Sea, kind: str) -> list[str]:
    found = sea.hub.admin.get("/v1/changes", params={"cluster": "visby", "most": 1000}).json()["changes"]
    return [one["detail"] for one in found if one["kind"] == kind]


def cpu(sea: Sea) -> int:
    found = sea.hub.admin.get("/v1/inventory").json()["clusters"]
    return next(int(one["totals"]["cpu"]) for one in found if one["id"] == "visby")


def test_nobody_is_sent_to_the_thief_and_two_senders_are_noticed(sea: Sea, thief: Thief) -> None:
    before = told(sea)
    evil = facts(sea, endpoint=EVIL, verify=False, region="nowhere")
    assert thief.beat(HUGE, facts=evil, totals={"cpu": 7}, whole=True).status_code == 200
    eventually(lambda: any(EVIL in one for one in history(sea, "address")), "that it asks for another address")

    def noticed() -> dict[str, Any]:
        assert thief.beat(facts=evil).status_code == 200
        now = sea.hub.cluster("visby")
        return now if "more than one program" in now["reason"] else {}

    seen = eventually(noticed, "said in words")
    assert seen["state"] == "degraded"
    assert seen["facts"]["endpoint"] == sea.visby.url
    assert seen["facts"]["verify"] is True
    assert history(sea, "senders")
    status = sea.hub.admin.get("/v1/federation/status").json()
    assert [one["cluster"] for one in status["degraded"]] == ["visby"]
    assert told(sea) == before
    assert thief.neighbours() == {"lubeck": sea.lubeck.url}
    eventually(lambda: cpu(sea) == 250, "what visby says of itself is back")


def test_huge_numbers_lock_nobody_out(sea: Sea, thief: Thief) -> None:
    """Neither of heartbeats nor of answers nor of reports; what visby says afterwards is heard and written down."""
    forged = [{"number": HUGE, "at": 1.0, "kind": "approved", "detail": "by cluster_admin"}]
    beat = thief.beat(HUGE, answered=HUGE, totals={"cpu": 7}, reports=forged, run="r", whole=True)
    assert beat.status_code == 200
    eventually(lambda: cpu(sea) == 250, "what visby says of itself is back")
    heard = sea.hub.cluster("visby")["seen"]
    sea.visby.kill()
    sea.visby.start()
    eventually(lambda: sea.hub.cluster("visby")["seen"] > heard, "heard again")
    eventually(lambda: history(sea, "started"), "its own report is written down")
    eventually(lambda: membership(sea.visby)["reports_waiting"] == 0, "and acknowledged")
    assert history(sea, "said-approved") == ["by cluster_admin"]
    assert history(sea, "approved") == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"incarnation": 1, "number": 9223372036854775808}',
        b'{"incarnation": 1, "number": -1}',
        b'{"incarnation": 1, "number": 1e300}',
        b'{"incarnation": 1, "number": 10000000000000000000000000000000000000000}',
        b'{"incarnation": 1, "number": 1, "answered": 9223372036854775808}',
        b'{"incarnation": 1, "number": 1, "reports": [{"number": 9223372036854775808, "at": 1, "kind": "x"}]}',
        b'{"incarnation": 1, "number": 1, "reports": [{"number": 1, "at": 1e300, "kind": "x"}]}',
        b'{"incarnation": 1, "number": 1, "run": "' + b"x" * 65 + b'"}',
    ],
)
def test_numbers_no_database_holds_are_refused_and_disturb_nobody(sea: Sea, body: bytes) -> None:
    with contextlib.closing(Thief.of(sea.visby)) as found:
        assert found.beat(body=body).status_code == 400
        assert found.beat(1, incarnation=HUGE).status_code == 403
    heard = sea.hub.cluster("lubeck")["seen"]
    eventually(lambda: sea.hub.cluster("lubeck")["seen"] > heard, "others are heard")
    assert sea.hub.admin.get("/ready").status_code == 200


def test_renewing_again_and_again_does_not_shut_the_member_out(sea: Sea, thief: Thief) -> None:
    """Its certificate is one of the last while it is in use, however many others were signed since."""
    refused: dict[str, Any] = {}
    for number in range(12):
        thief.beat()
        heard = sea.hub.cluster("visby")["seen"]
        eventually(lambda heard=heard: sea.hub.cluster("visby")["seen"] > heard, "somebody is heard")  # type: ignore[misc]
        answer = thief.renew()
        if answer.status_code != 200:
            refused = answer.json()
            break
        assert number < 10
    assert refused["type"] == "/problems/federation.too-many-certificates"
    eventually(lambda: cpu(sea) == 250, "visby is heard")
    assert membership(sea.visby)["state"] == "member"
    status = sea.hub.admin.get("/v1/clusters/visby").json()["reason"]
    assert "more than one program" in status


def test_a_thief_says_no_goodbye(sea: Sea, thief: Thief) -> None:
    before = len(history(sea, "goodbye"))
    for mark in (None, "made-up"):
        for _ in range(2):
            assert thief.leave(mark).json()["type"] == "/problems/federation.goodbye-in-doubt"
            assert thief.beat(run=mark or "", applied={"drained": True}, whole=True).status_code == 200
    heard = sea.hub.cluster("visby")["seen"]
    eventually(lambda: sea.hub.cluster("visby")["seen"] > heard, "visby is heard")
    assert membership(sea.visby)["state"] == "member"
    assert list(told(sea)) == ["visby"]
    told_of = history(sea, "goodbye")
    assert len(told_of) == before + 1
    assert "hansa cluster leave visby" in told_of[0]


def test_ever_new_sections_do_not_fill_the_hub(sea: Sea, thief: Thief) -> None:
    large = "x" * (4 * 2**20 - 100)
    assert thief.beat(links=large).status_code == 200
    assert thief.beat(odd=large).status_code == 200
    assert thief.beat(more="x" * (5 * 2**20)).status_code == 413
    for start in range(0, 120, 30):
        many: dict[str, Any] = {f"s{number}": 1 for number in range(start, start + 30)}
        assert thief.beat(**many).status_code == 200
    kept = sea.hub.admin.get("/v1/clusters/visby/status").json()["sections"]
    assert len(kept) <= 40
    assert "odd" not in kept
    eventually(lambda: cpu(sea) == 250, "visby is heard")
    eventually(lambda: isinstance(_sections(sea).get("links"), list), "its own sections take their places again")


def _sections(sea: Sea) -> dict[str, Any]:
    return dict(sea.hub.admin.get("/v1/clusters/visby/status").json()["sections"])
