"""A hub and three real managers, each in a network namespace: cut off, drained, removed, returned, told in stages."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from journeys.hub.members import eventually, membership
from real.federation import Cluster, data_folder, start_all, stop_all
from real.gate import gate
from real.hub import Hub
from real.manager import ROOMY, leased_uids
from real.netns import Network, network

pytestmark = pytest.mark.deep

CLUSTERS = ("lubeck", "visby", "riga")
CAPITAL = "capital"  # where the hub is
PORT, HUB_PORT, MEMBERS_PORT = 8080, 7070, 7443
EVERY = 1.0
LAB = '["10.99.0.0/24"]'  # where the namespaces are: there is no TLS between them
SETTINGS = {
    "hub.heartbeat_every": EVERY,
    "hub.lease_seconds": 2.0,
    "hub.sync_every": 0.1,
    "hub.plain_http": LAB,
}


@dataclass(frozen=True, slots=True)
class Sea:
    hub: Hub
    clusters: dict[str, Cluster]
    net: Network

    def states(self) -> dict[str, str]:
        return {name: self.hub.state(name) for name in CLUSTERS}

    def all_ready(self) -> bool:
        """And heard: who has just joined is ready before its first word."""
        known = [self.hub.cluster(name) for name in CLUSTERS if self.hub.state(name) == "ready"]
        return len(known) == len(CLUSTERS) and all(one["seen"] for one in known)

    def story(self, cluster: str) -> list[str]:
        """What happened to its state, oldest first."""
        told = self.hub.admin.get("/v1/changes", params={"cluster": cluster, "most": 1000}).json()["changes"]
        return [one["detail"] for one in sorted(told, key=lambda one: one["id"]) if one["kind"] == "state"]

    def runs(self, cluster: str, name: str) -> None:
        """Its users are served, whatever becomes of the hub."""
        admin = self.clusters[cluster].admin
        definition = {"name": name, "image": "debian", "cpu": "0.05", "memory": "64Mi", "script": "echo fine"}
        assert admin.post("/system/services", json=definition).status_code == 201
        assert self.with_token(cluster, name).post(f"/run/{name}").status_code == 200
        assert admin.delete(f"/system/services/{name}").status_code == 204

    def with_token(self, cluster: str, service: str) -> httpx.Client:
        manager = self.clusters[cluster]
        return manager.bearer(manager.admin.get(f"/system/services/{service}").json()["token"])

    def versions(self, document: str) -> dict[str, tuple[int, str]]:
        found = self.hub.admin.get(f"/v1/configs/{document}").json()["clusters"]
        return {one["cluster"]: (one["applied"], one["state"]) for one in found}

    def rollout(self, document: str) -> dict[str, Any]:
        return dict(self.hub.admin.get(f"/v1/configs/{document}/rollout").json())


@pytest.fixture(scope="module")
def whole_sea() -> Iterator[Sea]:
    with contextlib.ExitStack() as undo:
        net = undo.enter_context(network(CAPITAL, *CLUSTERS))
        door = undo.enter_context(gate((net.address(CAPITAL), HUB_PORT), connect_in=net.namespace(CAPITAL)))
        hub = Hub(
            undo.enter_context(data_folder(CAPITAL)),
            SETTINGS,
            port=HUB_PORT,
            members_port=MEMBERS_PORT,
            host=net.address(CAPITAL),
            inside=tuple(net.inside(CAPITAL)),
            door=door.url,
        )
        undo.callback(hub.close)
        hub.start()
        clusters: dict[str, Cluster] = {}
        for name in CLUSTERS:
            address = net.address(name)
            here = undo.enter_context(gate((address, PORT), connect_in=net.namespace(name)))
            given = {
                **{key: value for key, value in ROOMY.items() if not key.startswith("jobs.")},
                "cluster.id": name,
                "cluster.public_url": f"http://{address}:{PORT}",
                "http.host": address,
                "http.port": PORT,
                "storage.host": address,
                "membership.hub": hub.members_url,
                "membership.token": hub.token(),
                "membership.link_probe_every": 0.3,
                "federation.plain_http": LAB,
                "sandbox.uid_base": undo.enter_context(leased_uids()),
            }
            folder = undo.enter_context(data_folder(name))
            clusters[name] = Cluster(folder, here.port, given, name=name, inside=tuple(net.inside(name)))
            undo.callback(clusters[name].close)
        start_all(clusters)
        yield Sea(hub, clusters, net)
        stop_all(clusters)


@pytest.fixture
def sea(whole_sea: Sea) -> Iterator[Sea]:
    eventually(whole_sea.all_ready, "all ready")
    yield whole_sea
    whole_sea.net.heal_all()


def test_one_that_is_cut_off_is_known_within_three_heartbeats_and_serves_on(sea: Sea) -> None:
    sea.net.cut("riga")
    eventually(lambda: sea.hub.state("riga") == "unreachable", "unreachable")
    lost = sea.hub.cluster("riga")
    assert f"3 missed of {EVERY:g} s" in lost["reason"], lost
    assert lost["since"] - lost["seen"] >= 2 * EVERY
    assert {name: state for name, state in sea.states().items() if name != "riga"} == {
        "lubeck": "ready",
        "visby": "ready",
    }
    sea.runs("riga", "on-its-own")

    def link_down() -> bool:
        links = sea.hub.admin.get("/v1/links").json()["links"]
        return any((one["source"], one["target"], one["up"]) == ("lubeck", "riga", False) for one in links)

    eventually(link_down, "the link is told to be down")
    sea.net.heal_all()
    eventually(sea.all_ready, "ready again")
    assert [one.partition(":")[0] for one in sea.story("riga")][-3:] == [
        "ready -> degraded",
        "degraded -> unreachable",
        "unreachable -> ready",
    ]


def test_one_that_is_killed_is_known_and_known_again(sea: Sea) -> None:
    sea.clusters["visby"].kill()
    eventually(lambda: sea.hub.state("visby") == "unreachable", "unreachable")
    sea.clusters["visby"].start()
    eventually(sea.all_ready, "ready again")
    told = sea.hub.admin.get("/v1/changes", params={"cluster": "visby"}).json()["changes"]
    assert "started" in {one["kind"] for one in told}


def test_a_drain_waits_for_what_runs(sea: Sea) -> None:
    admin = sea.clusters["visby"].admin
    stop = "while [ ! -e /tmp/never ]; do sleep 0.2; i=$((i+1)); [ $i -gt 15 ] && exit 0; done"
    definition = {"name": "slow", "image": "debian", "cpu": "0.05", "memory": "64Mi", "script": f"i=0; {stop}"}
    assert admin.post("/system/services", json=definition).status_code == 201
    job = sea.with_token("visby", "slow").post("/job/slow", content=b"x").headers["x-hansa-job"]
    eventually(lambda: admin.get(f"/v1/jobs/{job}").json()["status"] == "Running", "running")
    assert sea.hub.admin.post("/v1/clusters/visby/drain").status_code == 200
    eventually(lambda: sea.hub.cluster("visby")["reason"] == "1 jobs run, 0 wait", "draining, with its progress")
    assert sea.hub.state("visby") == "draining"
    eventually(lambda: sea.hub.cluster("visby")["reason"].startswith("drained"), "drained")
    assert admin.get(f"/v1/jobs/{job}").json()["status"] == "Succeeded"
    assert sea.hub.admin.post("/v1/clusters/visby/uncordon").status_code == 200
    eventually(sea.all_ready, "ready again")
    assert admin.delete("/system/services/slow").status_code == 204


def test_one_removed_while_it_was_cut_off_returns_as_new(sea: Sea) -> None:
    sea.net.cut("riga")
    eventually(lambda: sea.hub.state("riga") == "unreachable", "unreachable")
    assert sea.hub.admin.delete("/v1/clusters/riga").status_code == 204
    assert sea.hub.admin.get("/v1/clusters/riga").status_code == 404
    found = sea.hub.admin.get("/v1/inventory", params={"nodes": "true"}).text
    assert "riga" not in found
    eventually(
        lambda: [one["id"] for one in membership(sea.clusters["lubeck"])["neighbours"]] == ["visby"], "forgotten"
    )
    sea.net.heal_all()
    eventually(lambda: membership(sea.clusters["riga"])["state"] == "removed", "told so")
    sea.runs("riga", "still-here")
    body = {"hub": sea.hub.members_url, "token": sea.hub.token()}
    assert sea.clusters["riga"].admin.post("/v1/membership", json=body).status_code == 200
    eventually(sea.all_ready, "a member again")


def test_a_rollout_stops_at_the_canary_and_a_cut_off_cluster_follows_later(sea: Sea) -> None:
    brisk = {"canary": 1, "percentages": [100], "soak": 0.3, "patience": 20}
    first = {"settings": {"jobs": {"keep": 86400}}, "stages": brisk}
    assert sea.hub.admin.put("/v1/configs/limits", json=first).status_code == 200
    eventually(lambda: sea.rollout("limits")["state"] == "done", "spread")
    assert sea.versions("limits") == dict.fromkeys(CLUSTERS, (1, "in-sync"))

    too_much = {"settings": {"jobs": {"keep": 86400, "cpu": "10000"}}, "stages": brisk}
    assert sea.hub.admin.put("/v1/configs/limits", json=too_much).status_code == 200
    stopped = eventually(lambda: now if (now := sea.rollout("limits"))["state"] == "stopped" else None, "stopped")
    assert "more than this machine has" in str(stopped), stopped
    shown = sea.versions("limits")
    failed = [name for name, (_, state) in shown.items() if state == "failed"]
    assert len(failed) == 1  # the canary; the others were never told
    assert {applied for applied, _ in shown.values()} == {1}  # and what failed is not in force there either

    sea.net.cut("riga")
    eventually(lambda: sea.hub.state("riga") == "unreachable", "unreachable")
    good = {"settings": {"jobs": {"keep": 7200}}, "stages": brisk}
    assert sea.hub.admin.put("/v1/configs/limits", json=good).status_code == 200
    eventually(
        lambda: (
            sea.versions("limits") == {"lubeck": (3, "in-sync"), "visby": (3, "in-sync"), "riga": (1, "out-of-reach")}
        ),
        "spread to those that can be reached",
    )
    assert membership(sea.clusters["riga"])["settings"]["jobs"]["keep"] == 86400  # it goes on with what it has
    sea.net.heal_all()
    eventually(lambda: sea.versions("limits") == dict.fromkeys(CLUSTERS, (3, "in-sync")), "all have it")
    eventually(sea.all_ready, "ready")
    assert membership(sea.clusters["riga"])["settings"]["jobs"]["keep"] == 7200
