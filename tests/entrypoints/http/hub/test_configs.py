"""`/v1/configs` as people use it: write, watch it spread, look at who has what, go back."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from entrypoints.http.hub.serving import Scene, hub_at_home
from federation.small_federation import Manager, join, later, turn
from hansa.federation import configuration

STAGES = {"canary": 1, "percentages": [100], "soak": 0}
FIRST = {"settings": {"jobs": {"run_limit": 60}}, "stages": STAGES, "comment": "short runs"}


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with hub_at_home(tmp_path) as opened:
        yield opened


async def call(scene: Scene, method: str, path: str, status: int = 200, body: Any = None) -> Any:
    answer = await scene.client.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()


async def spread(scene: Scene, *managers: Manager) -> None:
    driver = configuration.Driver(scene.hub)
    for _ in range(6):
        await turn(scene.hub, driver)
        for manager in managers:
            manager.follow()
        later(scene.hub, 1)


async def test_a_document_from_its_first_version_to_its_removal(scene: Scene) -> None:
    lubeck, visby = await join(scene.hub, "lubeck"), await join(scene.hub, "visby")
    made = await call(scene, "PUT", "/v1/configs/base", body=FIRST)
    assert made["document"]["settings"] == {"jobs": {"run_limit": 60.0}}
    assert (made["rollout"]["state"], made["rollout"]["stage"], made["rollout"]["stages"]) == ("running", 1, 2)
    await spread(scene, lubeck, visby)
    shown = await call(scene, "GET", "/v1/configs/base")
    assert shown["rollout"]["state"] == "done"
    assert {one["cluster"]: one["applied"] for one in shown["clusters"]} == {"lubeck": 1, "visby": 1}
    lubeck.refuses = "no room"
    await call(scene, "PUT", "/v1/configs/base", body={**FIRST, "settings": {"jobs": {"run_limit": 90}}, "expected": 1})
    await spread(scene, lubeck, visby)
    rollout = await call(scene, "GET", "/v1/configs/base/rollout")
    assert (rollout["state"], rollout["version"], rollout["former"]) == ("stopped", 2, 1)
    assert rollout["reason"] == "1 failed, 0 may: lubeck: it was not taken: no room"
    assert [(one["cluster"], one["applied"], one["state"]) for one in rollout["clusters"]] == [
        ("lubeck", 1, "failed"),
        ("visby", 1, "in-sync"),
    ]
    overview = await call(scene, "GET", "/v1/federation/config")
    assert overview["drift"] == []
    assert overview["documents"][0]["clusters"] == {"failed": 1, "in-sync": 1}
    assert "jobs.run_limit" in overview["live"]
    lubeck.refuses = ""
    back = await call(scene, "POST", "/v1/configs/base/roll-back", body={"version": 1})
    assert (back["document"]["version"], back["document"]["comment"]) == (3, "as version 1")
    await spread(scene, lubeck, visby)
    effective = await call(scene, "GET", "/v1/clusters/lubeck/config")
    assert effective["origins"] == [
        {"setting": "jobs.run_limit", "value": 60.0, "document": "base", "version": 3, "overrides": []}
    ]
    assert effective["drift"] == ""
    versions = await call(scene, "GET", "/v1/configs/base/versions")
    assert [one["version"] for one in versions["versions"]] == [3, 2, 1]
    assert (await call(scene, "GET", "/v1/configs/base/versions/2"))["settings"] == {"jobs": {"run_limit": 90.0}}
    diff = await call(scene, "GET", "/v1/configs/base/diff?from=1&to=2")
    assert diff["settings"] == [{"setting": "jobs.run_limit", "before": 60.0, "after": 90.0, "change": "changed"}]
    assert [one["name"] for one in (await call(scene, "GET", "/v1/configs"))["documents"]] == ["base"]
    removed = await call(scene, "DELETE", "/v1/configs/base?at_once=true")
    assert removed["document"]["removed"]
    await spread(scene, lubeck, visby)
    assert lubeck.settings == {}
    await call(scene, "GET", "/v1/configs/base", 404)
    assert (await call(scene, "GET", "/v1/configs"))["documents"] == []
    told = await call(scene, "GET", "/v1/changes")
    assert {one["detail"] for one in told["changes"] if one["kind"] == "config"} >= {
        "base version 1 written by cluster_admin: short runs",
        "base version 2: stopped: 1 failed, 0 may: lubeck: it was not taken: no room",
    }


async def test_a_rollout_is_held_and_let_go(scene: Scene) -> None:
    lubeck = await join(scene.hub, "lubeck")
    await call(scene, "PUT", "/v1/federation/config", body=FIRST)
    assert (await call(scene, "POST", "/v1/configs/federation/rollout/pause"))["state"] == "paused"
    await spread(scene, lubeck)
    assert lubeck.settings == {}
    assert (await call(scene, "POST", "/v1/configs/federation/rollout/stop"))["state"] == "stopped"
    problem = await call(scene, "POST", "/v1/configs/federation/rollout/pause", 409)
    assert problem["type"] == "/problems/federation.wrong-rollout-state"
    assert (await call(scene, "POST", "/v1/configs/federation/rollout/resume"))["state"] == "running"
    await spread(scene, lubeck)
    assert lubeck.settings == {"jobs": {"run_limit": 60.0}}


REFUSED: list[tuple[str, str, Any, int, str]] = [
    ("PUT", "/v1/configs/base", {"settings": {"jobs": {"cpus": 1}}}, 400, "federation.not-live"),
    ("PUT", "/v1/configs/base", {"settings": {"jobs": {"cpu": "x"}}}, 400, "settings.invalid"),
    ("PUT", "/v1/configs/base", {"settings": {}}, 400, "federation.bad-document"),
    ("PUT", "/v1/configs/base", {"setings": {}}, 400, "request.body-invalid"),
    ("PUT", "/v1/configs/base", {**FIRST, "expected": 4}, 409, "federation.wrong-version"),
    ("PUT", "/v1/configs/Base", FIRST, 400, "name.invalid"),
    ("GET", "/v1/configs/none", None, 404, "federation.no-such-document"),
    ("GET", "/v1/configs/none/rollout", None, 404, "federation.no-such-document"),
    ("GET", "/v1/configs/none/versions", None, 404, "federation.no-such-document"),
    ("GET", "/v1/configs/none/diff", None, 404, "federation.no-such-document"),
    ("GET", "/v1/configs/none/diff?form=1", None, 400, "request.invalid"),
    ("GET", "/v1/configs/none/versions/x", None, 400, "request.invalid"),
    ("DELETE", "/v1/configs/none", None, 404, "federation.no-such-document"),
    ("POST", "/v1/configs/none/roll-back", {"version": 1}, 404, "federation.no-such-document"),
    ("POST", "/v1/configs/none/rollout/pause", None, 404, "federation.no-such-document"),
    ("GET", "/v1/clusters/none/config", None, 404, "federation.no-such-cluster"),
]


async def test_refusals_are_problems(scene: Scene) -> None:
    for method, path, body, status, code in REFUSED:
        assert (await call(scene, method, path, status, body))["type"] == f"/problems/{code}"


async def test_strangers_see_nothing(scene: Scene) -> None:
    async with httpx.AsyncClient(base_url=scene.client.base_url, trust_env=False) as nobody:
        assert (await nobody.get("/v1/configs")).status_code == 401
        assert (await nobody.put("/v1/configs/base", json=FIRST)).status_code == 401


async def test_the_document_describes_what_is_taken(scene: Scene) -> None:
    api = await call(scene, "GET", "/openapi.json")
    put = api["paths"]["/v1/configs/{name}"]["put"]
    schema = put["requestBody"]["content"]["application/json"]["schema"]
    jsonschema_rs.validate(schema, FIRST)
    refused: list[Any] = [
        {"settings": {"http": {"port": 1}}},
        {"settings": {"jobs": {"cpu": True}}},
        {"settings": {}},
        {},
    ]
    for wrong in refused:
        assert not jsonschema_rs.is_valid(schema, wrong)
    shown = api["paths"]["/v1/configs/{name}"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    made = await call(scene, "PUT", "/v1/configs/base", body=FIRST)
    jsonschema_rs.validate(shown, made)
