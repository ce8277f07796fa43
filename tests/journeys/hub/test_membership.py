"""Managers join a hub, report, are told, are cut off, removed and return; their users notice nothing of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from journeys.hub.members import Sea, a_sea, caller_of, eventually, membership
from real.manager import Manager, StartManager


@pytest.fixture(scope="module")
def sea() -> Iterator[Sea]:
    with a_sea() as opened:
        yield opened


def serves(manager: Manager, name: str) -> None:
    """A user makes a service, runs it, and removes it."""
    definition = {"name": name, "image": "debian", "cpu": "0.05", "memory": "64Mi", "script": "echo fine"}
    assert manager.admin.post("/system/services", json=definition).status_code == 201
    assert caller_of(manager, name).post(f"/run/{name}").status_code == 200
    assert manager.admin.delete(f"/system/services/{name}").status_code == 204


def put_document(sea: Sea, name: str, settings: dict[str, Any]) -> None:
    """For visby, at once."""
    body = {
        "settings": settings,
        "scope": {"cluster": "visby"},
        "stages": {"canary": 0, "percentages": [100], "soak": 0},
    }
    answer = sea.hub.admin.put(f"/v1/configs/{name}", json=body)
    assert answer.status_code == 200, answer.text


def remove_document(sea: Sea, name: str) -> None:
    answer = sea.hub.admin.delete(f"/v1/configs/{name}", params={"at_once": "true"})
    assert answer.status_code == 200, answer.text
    eventually(lambda: membership(sea.visby)["settings"] == {}, "gone")


def test_who_joined_is_known_with_what_it_is_and_has(sea: Sea) -> None:
    shown = membership(sea.lubeck)
    assert (shown["state"], shown["seen_as"], shown["hub"]) == ("member", "ready", sea.hub.members_url)
    known = sea.hub.cluster("lubeck")
    assert known["facts"]["endpoint"] == sea.lubeck.url
    assert known["facts"]["region"] == "baltic"
    assert "sections.v1" in known["facts"]["speaks"]
    found = sea.hub.admin.get("/v1/inventory", params={"nodes": "true"}).json()
    cpu = {one["id"]: one["totals"]["cpu"] for one in found["clusters"]}
    assert cpu == {"lubeck": 100, "visby": 250}
    eventually(lambda: membership(sea.lubeck)["reports_waiting"] == 0, "told all")
    told = {(one["cluster"], one["kind"]) for one in sea.hub.admin.get("/v1/changes").json()["changes"]}
    assert {("lubeck", "joined"), ("visby", "joined")} <= told


def test_links_are_measured_and_told(sea: Sea) -> None:
    def links() -> dict[tuple[str, str], bool]:
        found = sea.hub.admin.get("/v1/links").json()["links"]
        return {(one["source"], one["target"]): one["up"] for one in found}

    eventually(lambda: links() == {("lubeck", "visby"): True, ("visby", "lubeck"): True}, "both links up")
    (link,) = membership(sea.lubeck)["links"]
    assert 0 < link["latency"] < 5


def test_only_the_admin_joins_and_leaves_and_a_wrong_token_is_refused(sea: Sea, start_manager: StartManager) -> None:
    alone = start_manager({"cluster.id": "riga"})
    assert alone.anonymous.get("/v1/membership").status_code == 401
    assert membership(alone)["state"] == "none"
    assert alone.admin.delete("/v1/membership").json()["type"] == "/problems/membership.no-member"
    wrong: list[Any] = [{}, {"hub": sea.hub.members_url}, {"hub": sea.hub.members_url, "token": "x", "more": 1}, []]
    for body in wrong:
        assert alone.admin.post("/v1/membership", json=body).status_code == 400
    for hub, token, code in (
        ("http://127.0.0.1:1", "x", "membership.bad-hub"),
        (sea.hub.members_url, "made up", "membership.refused"),
        (sea.hub.members_url, sea.hub.token(cluster="tallinn"), "membership.refused"),
        ("https://127.0.0.1:1", sea.hub.token(), "federation.hub-unreachable"),
    ):
        answer = alone.admin.post("/v1/membership", json={"hub": hub, "token": token})
        assert answer.json()["type"] == f"/problems/{code}", answer.text
        assert answer.json()["hint"] or code == "membership.refused"
    assert membership(alone)["state"] == "none"

    token = sea.hub.token(approve=False)
    joined = alone.admin.post("/v1/membership", json={"hub": sea.hub.members_url, "token": token})
    assert (joined.status_code, joined.json()["state"]) == (200, "pending"), joined.text
    eventually(lambda: membership(alone)["seen_as"] == "pending", "heard")
    assert membership(alone)["neighbours"] == []
    assert alone.admin.post("/v1/membership", json={"hub": sea.hub.members_url, "token": token}).status_code == 409
    sea.act("riga", "approve")
    eventually(lambda: membership(alone)["state"] == "member", "a member")
    eventually(lambda: len(membership(alone)["neighbours"]) == 2, "told of its neighbours")

    left = alone.admin.delete("/v1/membership")
    assert left.status_code == 202, left.text
    eventually(lambda: membership(alone)["state"] == "left", "left")
    assert sea.hub.state("riga") == "left"
    assert not list((alone.data / "membership").iterdir())
    eventually(sea.are_neighbours, "forgotten by its neighbours")
    assert sea.hub.admin.delete("/v1/clusters/riga").status_code == 204


def test_a_service_and_its_store_are_named_by_cluster_ids_alone(sea: Sea) -> None:
    """Endpoints and trust come from the hub; where visby keeps its objects, from visby itself."""
    assert sea.visby.admin.post("/system/buckets", json={"bucket_name": "far-results"}).status_code == 201
    script = 'echo "by $OSCAR_SERVICE_NAME" > "$TMP_OUTPUT_DIR/where"'
    output = [{"storage_provider": "minio.visby", "path": "far-results/out"}]
    with sea.service("by-id", script, output=output) as service:
        kept = sea.lubeck.admin.get(f"/system/services/{service}").json()
        store = sea.visby.admin.get("/system/config").json()["minio_provider"]
        assert kept["storage_providers"]["minio"]["visby"]["endpoint"] == store["endpoint"]
        told = sea.ended(sea.submit(service))
        assert (told["status"], told["delegation"]["cluster_id"]) == ("Succeeded", "visby"), told
        found = sea.visby.admin.get("/system/buckets/far-results").json()
        assert "out/where" in str(found)
    nowhere = sea.federated("nowhere")
    nowhere["federation"]["members"][0]["cluster_id"] = "atlantis"
    assert sea.lubeck.admin.post("/system/services", json=nowhere).status_code in (400, 403)
    lost = sea.federated("lost", output=[{"storage_provider": "minio.atlantis", "path": "a/out"}])
    assert "atlantis" in sea.lubeck.admin.post("/system/services", json=lost).text
    sea.visby.admin.delete("/system/buckets/far-results")


def test_a_cordoned_cluster_takes_nothing_of_others_and_serves_its_own(sea: Sea) -> None:
    with sea.service("cordoned") as service:
        sea.act("visby", "cordon")
        eventually(lambda: membership(sea.visby)["cordoned"], "cordoned")
        job = sea.submit(service)
        eventually(lambda: "cordoned" in sea.story(job)["reason"], "refused")
        assert sea.story(job)["status"] == "Pending"
        serves(sea.visby, "own")
        sea.act("visby", "uncordon")
        assert sea.ended(job)["status"] == "Succeeded"


def test_a_drain_lets_finish_what_runs_and_gives_back_what_waits(sea: Sea) -> None:
    with sea.service("long", "sleep 5") as service:
        runs, waits = sea.submit(service), sea.submit(service)
        eventually(lambda: {sea.story(one)["phase"] for one in (runs, waits)} == {"away"}, "both at visby")
        eventually(lambda: "Running" in {sea.story(one)["status"] for one in (runs, waits)}, "running")
        if sea.story(waits)["status"] == "Running":
            runs, waits = waits, runs
        sea.act("visby", "drain")
        draining = sea.await_state("visby", "draining")
        assert draining["cordoned"]
        eventually(lambda: sea.story(waits)["phase"] == "here", "given back")
        assert sea.ended(runs)["status"] == "Succeeded"
        eventually(lambda: sea.hub.cluster("visby")["reason"].startswith("drained"), "drained")
        shown = membership(sea.visby)
        assert (shown["drained"], shown["running"], shown["waiting"]) == (True, 0, 0)
        assert sea.story(waits)["status"] == "Pending"
        sea.act("visby", "uncordon")
        sea.await_state("visby", "ready")
        assert sea.ended(waits)["status"] == "Succeeded"


def test_own_jobs_of_a_cluster_that_drains_go_to_members_first(sea: Sea) -> None:
    """What would fit here goes elsewhere; what nobody takes runs here rather than nowhere."""
    with sea.service("small", "echo done", cpu="0.05") as service:
        sea.act("lubeck", "drain")
        eventually(lambda: membership(sea.lubeck)["draining"], "draining")
        told = sea.ended(sea.submit(service))
        assert (told["status"], told["delegation"]["cluster_id"]) == ("Succeeded", "visby"), told
        sea.act("visby", "cordon")
        eventually(lambda: membership(sea.visby)["cordoned"], "cordoned")
        told = sea.ended(sea.submit(service))
        assert (told["status"], told["phase"]) == ("Succeeded", "here"), told
        for ident in ("lubeck", "visby"):
            sea.act(ident, "uncordon")
        eventually(lambda: not membership(sea.visby)["cordoned"], "open again")


def test_settings_of_the_hub_are_in_force_and_go_back(sea: Sea) -> None:
    before = sea.visby.admin.get("/system/config").json()["allowed_image_repositories"]
    told = {
        "jobs": {"cpu": "150m"},
        "quotas": {"cpu": "7"},
        "images": {"allowed": ["debian"]},
        "log": {"level": "warning"},
    }
    put_document(sea, "harbour", told)
    shown = eventually(lambda: now if (now := membership(sea.visby))["documents"] else {}, "applied")
    assert (shown["settings"], shown["documents"]) == (told, [{"name": "harbour", "version": 1}])
    assert sea.visby.admin.get("/v1/node").json()["capacity"]["cpu"] == 150
    assert sea.visby.admin.get("/system/quotas/user/ann@test").json()["resources"]["cpu"]["max"] == 7000
    assert sea.visby.admin.get("/system/config").json()["allowed_image_repositories"] == ["debian"]
    refused = sea.visby.admin.put("/system/config", json={"allowed_image_repositories": ["x"]})
    assert refused.status_code == 409
    assert sea.visby.admin.get("/v1/jobs/not-logged").status_code == 404
    assert "/v1/jobs/not-logged" not in sea.visby.log
    put_document(sea, "harbour", {"quotas": {"cpu": "8"}})
    eventually(lambda: membership(sea.visby)["settings"] == {"quotas": {"cpu": "8"}}, "the next version")
    assert sea.visby.admin.get("/v1/node").json()["capacity"]["cpu"] == 250
    assert sea.visby.admin.get("/system/config").json()["allowed_image_repositories"] == before
    assert sea.visby.admin.get("/v1/jobs/logged-again").status_code == 404
    eventually(lambda: "/v1/jobs/logged-again" in sea.visby.log, "logged")
    remove_document(sea, "harbour")


def test_settings_that_this_machine_cannot_carry_are_refused_whole(sea: Sea) -> None:
    put_document(sea, "base", {"quotas": {"cpu": "3"}})
    rollout = "/v1/configs/base/rollout"  # a version that was not taken yet is nothing to fall back on
    eventually(lambda: sea.hub.admin.get(rollout).json()["state"] == "done", "applied, and known to be")
    put_document(sea, "base", {"quotas": {"cpu": "4"}, "jobs": {"cpu": "9999"}})
    shown = eventually(lambda: now if (now := membership(sea.visby))["error"] else {}, "refused")
    assert "jobs.cpu: 9999 is more than this machine has" in shown["error"]
    assert (shown["settings"], shown["documents"]) == ({"quotas": {"cpu": "3"}}, [{"name": "base", "version": 1}])
    assert sea.visby.admin.get("/v1/node").json()["capacity"]["cpu"] == 250
    degraded = sea.await_state("visby", "degraded")
    assert "9999" in degraded["reason"]
    put_document(sea, "base", {"quotas": {"cpu": "5"}})
    eventually(lambda: membership(sea.visby)["settings"] == {"quotas": {"cpu": "5"}}, "good again")
    sea.await_state("visby", "ready")
    remove_document(sea, "base")


def test_users_notice_nothing_while_the_hub_is_away_and_it_learns_all_when_it_is_back(sea: Sea) -> None:
    put_document(sea, "kept", {"quotas": {"cpu": "7"}})
    eventually(lambda: membership(sea.visby)["documents"], "applied")
    sea.hub.kill()
    eventually(lambda: membership(sea.visby)["trouble"], "noticed")
    assert membership(sea.visby)["state"] == "member"
    serves(sea.visby, "alone")
    with sea.service("away") as service:
        assert sea.ended(sea.submit(service))["status"] == "Succeeded"  # at visby, which it knows from the hub
        sea.visby.restart()  # it starts without its hub
        assert membership(sea.visby)["state"] == "member"
        assert membership(sea.visby)["reports_waiting"] >= 1
        assert sea.visby.admin.get("/system/quotas/user/ann@test").json()["resources"]["cpu"]["max"] == 7000
        assert sea.ended(sea.submit(service))["status"] == "Succeeded"
    sea.hub.start()
    for ident in ("lubeck", "visby"):
        sea.await_state(ident, "ready")
    eventually(lambda: membership(sea.visby)["reports_waiting"] == 0, "told all")
    told = {(one["cluster"], one["kind"]) for one in sea.hub.admin.get("/v1/changes").json()["changes"]}
    assert ("visby", "started") in told
    figures = sea.visby.admin.get("/metrics").text
    assert 'hansa_membership_heartbeats_total{outcome="failed"}' in figures
    assert "\nhansa_membership_hub_silent_seconds " in figures
    remove_document(sea, "kept")


def test_a_manager_that_dies_is_noticed_and_one_that_was_removed_meanwhile_returns(sea: Sea) -> None:
    sea.visby.kill()
    unreachable = sea.await_state("visby", "unreachable")
    assert "no heartbeat" in unreachable["reason"]
    assert sea.hub.admin.delete("/v1/clusters/visby").status_code == 204
    eventually(lambda: membership(sea.lubeck)["neighbours"] == [], "forgotten by its neighbour")
    refused = sea.lubeck.admin.post("/system/services", json=sea.federated("nobody"))
    assert refused.status_code == 403
    assert "hansa cluster join" in refused.text

    sea.visby.start()
    removed = eventually(lambda: told if (told := membership(sea.visby))["state"] == "removed" else {}, "told so")
    assert "removed" in removed["reason"]
    assert "hansa cluster join" in removed["hint"]
    serves(sea.visby, "still-here")
    again = sea.visby.admin.post("/v1/membership", json={"hub": sea.hub.members_url, "token": sea.hub.token()})
    assert (again.status_code, again.json()["state"]) == (200, "member"), again.text
    sea.await_state("visby", "ready")
    eventually(sea.are_neighbours, "neighbours again")


def test_leaving_by_force_needs_no_hub(sea: Sea) -> None:
    sea.hub.pause()
    try:
        answer = sea.visby.admin.delete("/v1/membership", params={"force": "true"})
    finally:
        sea.hub.go_on()
    assert (answer.status_code, answer.json()["state"]) == (200, "left")
    assert "could not be told" in answer.json()["reason"]
    sea.await_state("visby", "unreachable", "left")  # its goodbye may have lain in the hub's queue
    token = sea.hub.token(cluster="visby")
    assert sea.visby.admin.post("/v1/membership", json={"hub": sea.hub.members_url, "token": token}).status_code == 200
    sea.await_state("visby", "ready")
