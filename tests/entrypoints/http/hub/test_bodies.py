"""Does the hub's document promise what its routes take? Null above all: only where a field's type says so."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from entrypoints.http.hub.serving import Scene, hub_at_home


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with hub_at_home(tmp_path) as opened:
        yield opened


def bodies(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Method, path, schema and example of every native body."""
    for path, item in document["paths"].items():
        for method, told in item.items():
            if path.startswith("/v1/") and "requestBody" in told:
                content = told["requestBody"]["content"]["application/json"]
                yield method, path, content["schema"], content["example"]


def takes_null(field: dict[str, Any]) -> bool:
    kinds = [field, *field.get("anyOf", ())]
    return not field or any("null" in (kind.get("type"), *kind.get("enum", ())) for kind in kinds)


async def test_null_is_taken_exactly_where_it_is_promised(scene: Scene) -> None:
    document = await scene.get("/openapi.json")
    wrong, tried = [], 0
    for method, path, schema, example in bodies(document):
        address = path.format(cluster="nobody", name="nothing", token="x", root="x")
        for name, field in schema["properties"].items():
            answer = await scene.client.request(method, address, json={**example, name: None})
            told = answer.json() if answer.headers["content-type"] == "application/problem+json" else {}
            refused = told.get("type") == "/problems/request.body-invalid"
            tried += 1
            if refused is takes_null(field):
                wrong.append(f"{method} {path}: {name} is {field}, and null is {'refused' if refused else 'taken'}")
    assert wrong == []
    assert tried > 20
