"""`hansa cluster` and `hansa hub` say what a hub says, for people and for machines; part of it with a real hub."""

from typing import Any

import pytest

from entrypoints.cli.small_server import Hansa, SmallServer
from real.hub import Hub

NOW = 1_790_000_000.0
LUBECK: dict[str, Any] = {
    "id": "lubeck", "kind": "hansa", "state": "ready", "since": NOW, "reason": "it reports", "cordoned": False,
    "joined": NOW, "seen": NOW,
    "facts": {"name": "Lübeck", "region": "eu", "version": "0.1.0", "metadata": {"tier": "gold"},
              "coordinates": {"latitude": 53.87, "longitude": 10.69}, "cost": {"cpu_hour": 1.0, "memory_hour": 2.0}},
}  # fmt: skip
SECTIONS: dict[str, Any] = {
    "totals": {"nodes": 2, "nodes_ready": 1, "cpu": 8000, "cpu_used": 1500, "memory": 2**34, "memory_used": 2**30},
    "nodes": [{"name": "quay", "cpu": 4000, "cpu_used": 1500}],
    "links": [{"target": "visby", "up": True, "since": NOW, "latency": 0.0042, "loss": 0.1}],
    "of-another-version": {"x": 1},
}


def status(cluster: dict[str, Any], sections: dict[str, Any]) -> dict[str, Any]:
    same = {name: cluster[name] for name in ("state", "reason", "since", "seen", "cordoned")}
    return {**same, "wanted": "member", "cluster": cluster, "sections": sections}


@pytest.fixture
def hub(server: SmallServer, monkeypatch: pytest.MonkeyPatch) -> SmallServer:
    monkeypatch.setenv("HANSA_HUB", server.url)
    monkeypatch.setenv("HANSA_HUB_USER", "admin")
    return server


def test_list(hub: SmallServer, hansa: Hansa) -> None:
    cordoned = {**LUBECK, "id": "visby", "cordoned": True, "seen": None, "facts": {}}
    hub.on("GET /v1/clusters", {"age": 0.2, "clusters": [LUBECK, cordoned]})
    ran = hansa("cluster", "ls", "-l", "region=eu")
    assert ran.out.splitlines()[0].split() == ["CLUSTER", "STATE", "FOR", "REGION", "VERSION", "HEARD", "WHY"]
    assert ran.out.splitlines()[1].startswith("lubeck   ready  ")
    assert "ready, cordoned" in ran.out
    assert "never" in ran.out
    assert (ran.code, ran.err) == (0, "")
    assert hub.seen[0].query == {"selector": "region=eu"}
    assert [one["id"] for one in hansa("cluster", "ls", "--json").json()["clusters"]] == ["lubeck", "visby"]


def test_states_of_a_newer_hub_are_shown_as_they_are(hub: SmallServer, hansa: Hansa) -> None:
    strange = {**LUBECK, "state": "hibernating", "kind": "cloud", "cordoned": True, "tide": {"high": True}}
    hub.on("GET /v1/clusters", {"age": 0.2, "clusters": [LUBECK, strange]})
    ran = hansa("cluster", "ls")
    assert (ran.code, ran.err) == (0, "")
    assert "hibernating, cordoned" in ran.out
    assert hansa("cluster", "ls", "--json").json()["clusters"][1]["state"] == "hibernating"
    hub.on("GET /v1/clusters/lubeck/status", {**status(strange, SECTIONS), "wanted": "hibernate"})
    ran = hansa("cluster", "show", "lubeck")
    assert (ran.code, "hibernating" in ran.out) == (0, True)


def test_old_news_are_told_as_such(hub: SmallServer, hansa: Hansa) -> None:
    hub.on("GET /v1/clusters", {"age": 700, "clusters": []})
    ran = hansa("cluster", "ls")
    assert "no cluster yet" in ran.err
    assert "as it was 12 min ago" in ran.err


def test_show(hub: SmallServer, hansa: Hansa) -> None:
    hub.on("GET /v1/clusters/lubeck/status", status(LUBECK, SECTIONS))
    ran = hansa("cluster", "show", "lubeck")
    for text in (
        "Lübeck",
        "53.87, 10.69",
        "tier=gold",
        "1 of 2 ready",
        "1.5 of 8",
        "1Gi of 16Gi",
        "quay",
        "4.2 ms",
        "10%",
    ):
        assert text in ran.out
    assert hansa("cluster", "show", "lubeck", "--json").json()["sections"]["of-another-version"] == {"x": 1}


def test_sections_of_another_version_do_no_harm(hub: SmallServer, hansa: Hansa) -> None:
    sections = {"totals": {"nodes": "many"}, "nodes": {}, "links": 3}
    hub.on("GET /v1/clusters/lubeck/status", status(LUBECK, sections))
    assert hansa("cluster", "show", "lubeck").code == 0


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("approve", "let in"),
        ("cordon", "cordoned: it gets nothing new"),
        ("uncordon", "open again"),
        ("drain", "to be drained"),
        ("leave", "to leave when its work is done"),
    ],
)
def test_actions(hub: SmallServer, hansa: Hansa, action: str, said: str) -> None:
    hub.on(f"POST /v1/clusters/lubeck/{action}", {**LUBECK, "reason": "so it is"})
    assert hansa("cluster", action, "lubeck").out == f"lubeck is {said}\n"
    assert hansa("cluster", action, "lubeck", "--json").json()["reason"] == "so it is"


def test_drain_and_wait(hub: SmallServer, hansa: Hansa) -> None:
    draining = {**LUBECK, "cordoned": True, "reason": "1 jobs run, 0 wait"}  # the state follows a little later
    hub.on("POST /v1/clusters/lubeck/drain", draining).on("GET /v1/clusters/lubeck", draining)
    for applied in ({"applied": {"drained": False}}, {}, {"applied": {"drained": True}}):
        hub.on("GET /v1/clusters/lubeck/status", status(draining, applied))
    ran = hansa("cluster", "drain", "lubeck", "--wait")
    assert ran.out == "lubeck is drained: nothing of it runs any more\n"
    hub.on("POST /v1/clusters/visby/drain", draining).on("GET /v1/clusters/visby", {**LUBECK, "id": "visby"})
    hub.on("GET /v1/clusters/visby/status", status(LUBECK, {}))
    ran = hansa("cluster", "drain", "visby", "--wait")
    assert ran.code == 5
    assert "somebody stopped the drain" in ran.err


def test_update_says_only_what_was_given(hub: SmallServer, hansa: Hansa) -> None:
    hub.on("PATCH /v1/clusters/lubeck", LUBECK).on("GET /v1/clusters/lubeck", LUBECK)
    assert hansa("cluster", "update", "lubeck", "--region", "eu", "--at", "53.87,10.69", "--label", "a=b=c").code == 0
    assert hansa("cluster", "update", "lubeck", "--cpu-hour", "3").code == 0
    said = [seen.json() for seen in hub.calls("PATCH")]
    place = {"latitude": 53.87, "longitude": 10.69}
    assert said[0] == {"region": "eu", "coordinates": place, "metadata": {"a": "b=c"}}
    assert (said[1]["cost"]["cpu_hour"], said[1]["cost"]["memory_hour"]) == (3.0, 2.0)
    for wrong in ([], ["--at", "north"], ["--label", "gold"]):
        assert hansa("cluster", "update", "lubeck", *wrong).code == 2


def test_addresses_are_shown_and_decided_about(hub: SmallServer, hansa: Hansa) -> None:
    here = {**LUBECK, "facts": {**LUBECK["facts"], "endpoint": "https://lubeck.example"}}
    asking = {**here, "asks_for": "https://new.example"}
    hub.on("GET /v1/clusters/lubeck/status", status(asking, {}))
    shown = [line.rsplit(None, 1) for line in hansa("cluster", "show", "lubeck").out.splitlines()]
    assert ["endpoint", "https://lubeck.example"] in shown
    assert ["asks for", "https://new.example"] in shown
    hub.on("GET /v1/clusters/lubeck", asking)
    moved = {**here, "facts": {**here["facts"], "endpoint": "https://new.example"}}
    hub.on("POST /v1/clusters/lubeck/address/approve", moved).on("POST /v1/clusters/lubeck/address/refuse", here)
    ran = hansa("cluster", "address", "approve", "lubeck")
    assert (ran.code, "at https://new.example instead of https://lubeck.example?" in ran.err) == (2, True)
    ran = hansa("cluster", "address", "approve", "lubeck", "--yes")
    assert (ran.code, ran.out) == (0, "others reach lubeck at https://new.example\n")
    ran = hansa("cluster", "address", "refuse", "lubeck", "https://new.example")  # who names it need not be asked
    assert (ran.code, ran.out) == (0, "others reach lubeck at https://lubeck.example\n")
    assert [one.json() for one in hub.calls("POST")] == [{"endpoint": "https://new.example"}] * 2
    hub.on("GET /v1/clusters/visby", {**here, "id": "visby"})
    ran = hansa("cluster", "address", "approve", "visby", "--yes")
    assert (ran.code, "asks for no other address" in ran.err) == (5, True)


def test_an_admin_says_where_a_cluster_is(hub: SmallServer, hansa: Hansa) -> None:
    there = {**LUBECK, "facts": {**LUBECK["facts"], "endpoint": "https://new.example", "verify": False}}
    hub.on("PUT /v1/clusters/lubeck/address", there)
    ran = hansa("cluster", "address", "set", "lubeck", "https://new.example/", "--insecure")
    assert ran.out == "others reach lubeck at https://new.example, without checking its certificate\n"
    assert hub.calls("PUT")[0].json() == {"endpoint": "https://new.example", "verify": False}
    hub.on("GET /v1/clusters/lubeck/status", status(there, {}))
    assert "https://new.example, its certificate not checked" in hansa("cluster", "show", "lubeck").out


def test_add_oscar(hub: SmallServer, hansa: Hansa, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.on("POST /v1/clusters", {**LUBECK, "kind": "oscar"}, status=201)
    monkeypatch.setenv("HANSA_PASSWORD", "secret-word")
    ran = hansa("cluster", "add-oscar", "old", "https://old.example/", "-u", "oscar", "--label", "tier=gold")
    assert ran.code == 0
    assert "secret-word" not in ran.out + ran.err
    said = hub.seen[0].json()
    assert (said["endpoint"], said["user"], said["password"]) == ("https://old.example", "oscar", "secret-word")


def test_join_and_leave_ask_the_manager(admin: SmallServer, hansa: Hansa) -> None:
    standing = {"cluster": "lubeck", "state": "member", "since": NOW, "reason": "it joined", "hub": "https://h:7443"}
    for method in ("GET", "POST", "DELETE"):
        admin.on(f"{method} /v1/membership", standing)
    ran = hansa("cluster", "join", "https://h:7443/", "--token", "hansa1.x")
    assert (ran.code, "it joined" in ran.out) == (0, True)
    assert admin.seen[0].json() == {"hub": "https://h:7443", "token": "hansa1.x"}
    assert admin.seen[0].headers["authorization"].startswith("Basic ")
    assert hansa("cluster", "membership", "--json").json()["state"] == "member"
    assert hansa("cluster", "leave").code == 2  # nobody can be asked
    assert hansa("cluster", "leave", "--yes", "--force").code == 0
    assert admin.calls("DELETE")[0].query == {"force": "true"}


def test_admin_of_both_needs_no_token(admin: SmallServer, hub: SmallServer, hansa: Hansa) -> None:
    standing = {"cluster": "lubeck", "state": "none", "since": NOW, "reason": ""}
    admin.on("GET /v1/membership", standing).on("POST /v1/membership", {**standing, "state": "member"})
    made = {"id": "t", "expires": NOW, "approve": True, "token": "hansa1.x", "hub": "https://h:7443"}
    hub.on("POST /v1/cluster-tokens", made, status=201)
    assert "member" in hansa("cluster", "join").out
    assert hub.calls("POST")[0].json()["cluster"] == "lubeck"
    assert admin.calls("POST")[-1].json() == {"hub": "https://h:7443", "token": "hansa1.x"}
    assert hansa("cluster", "join", "--token", "x").code == 2


def test_leaving_is_waited_for(admin: SmallServer, hub: SmallServer, hansa: Hansa) -> None:
    leaving = {"cluster": "lubeck", "state": "leaving", "since": NOW, "reason": "1 jobs run"}
    admin.on("DELETE /v1/membership", leaving, status=202)
    admin.on("GET /v1/membership", leaving).on("GET /v1/membership", {**leaving, "state": "left"})
    assert "left" in hansa("cluster", "leave", "--yes", "--wait").out
    hub.on("POST /v1/clusters/lubeck/leave", LUBECK)
    hub.on("GET /v1/clusters/lubeck", LUBECK).on("GET /v1/clusters/lubeck", {**LUBECK, "state": "left"})
    assert hansa("cluster", "leave", "lubeck", "--wait").out == "lubeck has left\n"
    hub.on("GET /v1/clusters/visby", LUBECK).on("POST /v1/clusters/visby/leave", LUBECK)
    assert hansa("cluster", "leave", "visby", "--wait", "--timeout", "1").code == 6


def test_without_a_hub(hansa: Hansa) -> None:
    ran = hansa("cluster", "ls")
    assert ran.code == 3
    assert ran.err.splitlines()[-1] == "hint: sign in with: hansa login URL --hub, or set HANSA_HUB"


@pytest.mark.slow
def test_tokens_of_a_real_hub(at_hub: Hansa, real_hub: Hub) -> None:
    ran = at_hub("cluster", "token", "create", "--cluster", "lubeck", "--minutes", "5", "--no-approve")
    token = ran.out.strip()
    assert token.startswith("hansa1.")
    assert f"hansa cluster join {real_hub.members_url} --token TOKEN" in ran.err
    assert token not in ran.err
    as_json = at_hub("cluster", "token", "create", "--json")
    assert as_json.out.count(as_json.json()["token"]) == 1
    assert as_json.json()["token"] not in as_json.err
    assert at_hub("cluster", "token", "revoke", as_json.json()["id"]).code == 0
    listed = at_hub("cluster", "token", "ls")
    assert token not in listed.out
    (row,) = at_hub("cluster", "token", "ls", "--json").json()
    assert (row["cluster"], row["approve"], row["used_by"]) == ("lubeck", False, "")
    assert at_hub("cluster", "token", "revoke", row["id"]).out == f"revoked token {row['id']}\n"
    again = at_hub("cluster", "token", "revoke", "nothing")
    assert (again.code, again.err.splitlines()[-1]) == (4, "hint: hansa cluster token ls")


@pytest.mark.slow
def test_roots_of_a_real_hub(at_hub: Hansa) -> None:
    (root,) = at_hub("hub", "roots", "--json").json()["roots"]
    assert root["state"] == "active"
    assert root["id"] in at_hub("hub", "roots").out
    assert "follow it with: hansa hub roots" in at_hub("hub", "rotate-root").err
    assert at_hub("hub", "drop-root", "nothing", "--yes").code == 4
    ran = at_hub("cluster", "cordon", "nowhere")
    assert (ran.code, ran.err.splitlines()[-1]) == (4, "hint: hansa cluster ls")
