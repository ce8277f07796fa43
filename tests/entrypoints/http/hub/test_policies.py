"""`/v1/policies` as people use it: try it out, put it in force, look back, take it away."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from entrypoints.http.hub.serving import Scene, hub_at_home
from federation.small_federation import join

WHERE = {"kind": "placement", "rules": {"allowed": "region=eu"}, "comment": "data stays in the EU"}


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


async def test_a_policy_from_its_dry_run_to_its_removal(scene: Scene) -> None:
    await join(scene.hub, "lubeck", region="eu")
    await join(scene.hub, "boston", region="us")
    tried = await call(scene, "POST", "/v1/policies/where/dry-run", body=WHERE)
    assert tried == {
        "policy": "where",
        "version": 1,
        "differences": ['allowed: not said -> "region=eu"'],
        "effects": [
            {"subject": "boston", "before": "may be used", "after": "not: where allows only region=eu"},
        ],
        "warnings": [],
    }
    assert (await call(scene, "GET", "/v1/policies"))["policies"] == []
    made = await call(scene, "PUT", "/v1/policies/where", body=WHERE)
    assert (made["version"], made["author"], made["rules"]["spread"]) == (1, "cluster_admin", "none")
    assert await call(scene, "GET", "/v1/policies/where") == made
    assert [one["name"] for one in (await call(scene, "GET", "/v1/policies"))["policies"]] == ["where"]
    gone = await call(scene, "DELETE", "/v1/policies/where")
    assert gone["removed"]
    await call(scene, "GET", "/v1/policies/where", 404)
    history = await call(scene, "GET", "/v1/policies/where/versions")
    assert [(one["version"], one["removed"]) for one in history["versions"]] == [(2, True), (1, False)]
    told = await call(scene, "GET", "/v1/changes")
    assert [one["detail"] for one in told["changes"] if one["kind"] == "policy"] == [
        "where version 2 removed, by cluster_admin",
        "where version 1 in force, by cluster_admin: data stays in the EU",
    ]


async def test_who_may_join_and_how_often_it_reports_follow_at_once(scene: Scene) -> None:
    watch = {"kind": "federation", "rules": {"heartbeat_every": 30}}
    await call(scene, "PUT", "/v1/policies/watch", body=watch)
    assert scene.hub.limits().pace == 30
    problem = await call(scene, "PUT", "/v1/policies/again", 409, body=watch)
    assert problem["type"] == "/problems/federation.second-policy"


REFUSED: list[tuple[str, str, Any, int, str]] = [
    ("PUT", "/v1/policies/p", {"kind": "weather", "rules": {}}, 400, "request.body-invalid"),
    ("PUT", "/v1/policies/p", {"kind": "placement", "rules": {"wat": 1}}, 400, "federation.bad-policy"),
    ("PUT", "/v1/policies/p", {"kind": "placement", "rules": [1]}, 400, "request.body-invalid"),
    ("PUT", "/v1/policies/p", {**WHERE, "expected": 3}, 409, "federation.wrong-version"),
    ("PUT", "/v1/policies/P", WHERE, 400, "name.invalid"),
    ("POST", "/v1/policies/p/dry-run", {"kind": "network", "rules": {"rules": 1}}, 400, "federation.bad-policy"),
    ("GET", "/v1/policies/p", None, 404, "federation.no-such-document"),
    ("DELETE", "/v1/policies/p", None, 404, "federation.no-such-document"),
    ("GET", "/v1/policies/p/versions", None, 404, "federation.no-such-document"),
]


async def test_refusals_are_problems(scene: Scene) -> None:
    for method, path, body, status, code in REFUSED:
        assert (await call(scene, method, path, status, body))["type"] == f"/problems/{code}"


async def test_the_document_describes_what_is_taken(scene: Scene) -> None:
    api = await call(scene, "GET", "/openapi.json")
    put = api["paths"]["/v1/policies/{name}"]["put"]
    schema = put["requestBody"]["content"]["application/json"]["schema"]
    jsonschema_rs.validate(schema, WHERE)
    assert not jsonschema_rs.is_valid(schema, {"kind": "placement", "rules": {"wat": 1}})
