"""The story of the inventory at the hub's door: asked for, chosen from, refused where it makes no sense."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from entrypoints.http.hub.serving import Scene, hub_at_home
from federation.known_clusters import nodes
from hansa.federation import Note, history
from hansa.messages.inventory import Allocation, Clusters, ClusterStatus, FederationStatus, History, Inventory, Links


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with hub_at_home(tmp_path) as opened:
        opened.cluster("lubeck", region="eu", metadata={"tier": "gold"})
        opened.cluster("visby", region="eu", state="degraded", reason="disk full")
        opened.cluster("riga", region="us")
        opened.hear("lubeck", totals={"cpu": 8000, "cpu_used": 2000, "gpu": 2}, nodes=nodes(2))
        opened.hear("visby", totals={"cpu": 4000})
        yield opened


def shaped(answer: Any, kind: Any) -> Any:
    return msgspec.convert(answer, kind)


async def test_all_of_it(scene: Scene) -> None:
    answer = shaped(await scene.get("/v1/inventory"), Inventory)
    assert [one.id for one in answer.clusters] == ["lubeck", "riga", "visby"]
    assert (answer.total.cpu, answer.regions["eu"].cpu, answer.regions["us"].cpu) == (12000, 12000, 0)
    assert answer.clusters[0].nodes == ()
    assert answer.age < 60
    with_nodes = shaped(await scene.get("/v1/inventory", nodes="true"), Inventory)
    assert [len(one.nodes) for one in with_nodes.clusters] == [2, 0, 0]


async def test_some_of_it(scene: Scene) -> None:
    answer = shaped(await scene.get("/v1/inventory", selector="region=eu gpu>0 status=ready"), Inventory)
    assert ([one.id for one in answer.clusters], answer.total.gpu) == (["lubeck"], 2)
    listed = shaped(await scene.get("/v1/clusters", selector="state!=ready"), Clusters)
    assert [(one.id, one.reason) for one in listed.clusters] == [("visby", "disk full")]
    assert len(shaped(await scene.get("/v1/clusters"), Clusters).clusters) == 3


async def test_one_cluster(scene: Scene) -> None:
    said = shaped(await scene.get("/v1/clusters/lubeck/status"), ClusterStatus)
    assert said.cluster.facts.region == "eu"
    assert said.sections["totals"]["cpu"] == 8000
    used = shaped(await scene.get("/v1/clusters/lubeck/allocation"), Allocation)
    assert (used.cpu.free, used.cpu.share, used.cpu.of_federation) == (6000, 0.25, 0.666667)
    for part in ("status", "allocation", "history"):
        problem = await scene.get(f"/v1/clusters/nobody/{part}", 404)
        assert problem["type"] == "/problems/federation.no-such-cluster"


async def test_how_it_was(scene: Scene) -> None:
    fence = await scene.hub.leases.hold("history", 30)
    assert fence is not None
    assert await history.take(scene.hub, fence)
    for path, query in (
        ("/v1/inventory/history", {}),
        ("/v1/inventory/history", {"cluster": "lubeck"}),
        ("/v1/inventory/history", {"region": "eu"}),
        ("/v1/clusters/lubeck/history", {"from": -7200, "points": 5}),
    ):
        found = shaped(await scene.get(path, **query), History)
        assert [one.totals.gpu for one in found.samples] == [2]
    early: dict[str, Any] = {"from": 1.0, "to": 2.0}
    assert (await scene.get("/v1/inventory/history", **early))["samples"] == []


@pytest.mark.parametrize(
    ("path", "query", "status", "code", "part"),
    [
        ("/v1/inventory", {"selector": "regoin=eu"}, 400, "federation.bad-selector", "at character 1: there is no key"),
        ("/v1/clusters", {"selector": "region="}, 400, "federation.bad-selector", "at character 8"),
        ("/v1/inventory/stream", {"selector": "gpu>many"}, 400, "federation.bad-selector", "gpu"),
        ("/v1/inventory", {"slector": "x"}, 400, "request.invalid", "slector"),
        ("/v1/inventory", {"nodes": "perhaps"}, 400, "request.invalid", "nodes"),
        ("/v1/inventory/history", {"points": 0}, 400, "request.invalid", "points"),
        ("/v1/inventory/history", {"from": "yesterday"}, 400, "request.invalid", "from"),
        ("/v1/inventory/history", {"from": "nan"}, 400, "request.invalid", "from"),
        ("/v1/inventory/history", {"from": 5, "to": 4}, 400, "federation.bad-time", "not before"),
        ("/v1/inventory/history", {"cluster": "riga", "region": "us"}, 400, "request.invalid", "or of a region"),
        ("/v1/clusters/" + "x" * 64 + "/status", {}, 400, "request.invalid", "cluster"),
        ("/v1/inventory/history", {"cluster": "nobody"}, 404, "federation.no-such-cluster", "nobody"),
        ("/v1/links", {"cluster": "nobody"}, 404, "federation.no-such-cluster", "nobody"),
        ("/v1/changes", {"most": 5000}, 400, "request.invalid", "most"),
        ("/v1/changes", {"before": -1}, 400, "request.invalid", "before"),
    ],
)
async def test_what_is_refused(
    scene: Scene, path: str, query: dict[str, Any], status: int, code: str, part: str
) -> None:
    problem = await scene.get(path, status, **query)
    assert problem["type"] == f"/problems/{code}"
    assert part in problem["detail"]


async def test_nobody_in_particular_learns_nothing(scene: Scene) -> None:
    paths = await scene.get("/openapi.json")
    for path in (path for path in paths["paths"] if path.startswith(("/v1/inventory", "/v1/links", "/v1/changes"))):
        answer = await scene.client.get(path, auth=("admin", "wrong"))
        assert answer.status_code == 401, path


async def test_how_the_federation_is(scene: Scene) -> None:
    await scene.hub.clusters.note(Note("visby", "state", "ready -> degraded: disk full"))
    status = shaped(await scene.get("/v1/federation/status"), FederationStatus)
    assert (status.score, status.by_state) == (86.7, {"degraded": 1, "ready": 2})
    assert [one.reason for one in status.reasons] == ["1 of 3 clusters is degraded, 33% of the cpu: visby"]
    assert status.hubs == (scene.hub.id,)
    changes = await scene.get("/v1/changes", cluster="visby", most=1)
    assert [one["detail"] for one in changes["changes"]] == ["ready -> degraded: disk full"]
    assert (await scene.get("/v1/changes", before=changes["changes"][0]["id"], cluster="visby"))["changes"] == []


async def test_who_reaches_whom(scene: Scene) -> None:
    seen = {"since": 5.0, "latency": 0.02, "loss": 0.1}
    scene.hear("lubeck", links=[{"target": "visby", "up": True, **seen}])
    scene.hear("visby", links=[{"target": "lubeck", "up": False, "since": 9.0, "loss": 1.0, "reason": "refused"}])
    found = shaped(await scene.get("/v1/links", cluster="visby"), Links)
    assert [(one.source, one.up, one.latency, one.since) for one in found.links] == [
        ("lubeck", True, 0.02, 5.0),
        ("visby", False, None, 9.0),
    ]
    assert [one.clusters for one in found.disagreements] == [("lubeck", "visby")]
    assert found.disagreements[0].detail.endswith("refused")
    assert shaped(await scene.get("/v1/links", cluster="riga"), Links).links == ()
