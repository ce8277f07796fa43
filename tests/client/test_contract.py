"""The client and the OpenAPI document of a real hub say the same, both ways: routes, bodies, answers, parameters."""

import asyncio
import re
from typing import Any, get_args

import pytest

from hansa import bootstrap, settings
from hansa.client import AsyncHubClient, HubClient
from hansa.client.faces import Awaited, AwaitedEvents, Listening, Waiting
from hansa.client.operations import Operation
from hansa.entrypoints.http.hub import app as hub_application
from hansa.entrypoints.http.openapi import native_body, schema_of

_METHODS = ("get", "put", "post", "patch", "delete")


def operations(client: type, *kinds: type) -> dict[str, Operation[..., Any]]:
    """What a client offers, by the name of the method."""
    return {name: getattr(client, name) for name, one in vars(client).items() if isinstance(one, kinds)}


WAITING = operations(HubClient, Waiting, Listening)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = str(tmp_path_factory.mktemp("hub"))
    given = settings.load(env={"HANSA_ROLE": "hub", "HANSA_DATA": folder, "HANSA_ADMIN__PASSWORD": "x"})

    async def read() -> dict[str, Any]:
        async with bootstrap.opened_hub(given) as app:
            return hub_application.for_people(app).openapi()

    return asyncio.run(read())


def place(method: str, path: str) -> str:
    """A route, whatever its parameters are called."""
    return f"{method.upper()} {re.sub(r'{[^}]*}', '{}', path)}"


def routes(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        place(method, path): item[method]
        for path, item in document["paths"].items()
        if path.startswith("/v1/")
        for method in _METHODS
        if method in item
    }


def test_both_clients_have_the_same_methods() -> None:
    assert operations(AsyncHubClient, Awaited, AwaitedEvents) == WAITING
    public = [{name for name in dir(client) if not name.startswith("_")} for client in (HubClient, AsyncHubClient)]
    assert public[0] == public[1]
    assert [name for name, one in WAITING.items() if name != one.name or not one.__doc__] == []


def test_every_route_has_a_method_and_every_method_a_route(document: dict[str, Any]) -> None:
    ours = [place(one.method, one.path) for one in WAITING.values()]
    assert len(ours) == len(set(ours))
    assert sorted(ours) == sorted(routes(document))


def test_bodies_answers_and_parameters_agree(document: dict[str, Any]) -> None:
    found = routes(document)
    wrong = []
    for name, operation in WAITING.items():
        told = found.get(place(operation.method, operation.path))
        if told is not None:
            wrong += [f"{name}: {what}" for what in disagreements(operation, told)]
    assert wrong == []


def disagreements(operation: Operation[..., Any], told: dict[str, Any]) -> list[str]:
    found = []
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    ours = None
    if operation.body:  # what may be left out may not be null instead, unless its type says so
        ours = native_body(operation.body, None)["requestBody"]["content"]["application/json"]["schema"]
    if not is_within(without_nulls(ours), without_nulls(body)):
        found.append(f"the body is {body}, not {ours}")
    (answer,) = [one for status, one in told["responses"].items() if str(status).startswith("2")]
    if (problem := wrong_answer(operation, answer.get("content", {}))) != "":
        found.append(problem)
    asked = {one["name"] for one in told.get("parameters", ()) if one["in"] == "query"}
    call = operation.build(**{name: example(one.annotation) for name, one in operation.parameters.items()})
    if asked != call.query.keys():
        found.append(f"the query is {sorted(asked)}, not {sorted(call.query)}")
    if set(re.findall(r"{(.*?)}", operation.path)) != call.path.keys():
        found.append(f"the path's names are not {sorted(call.path)}")
    return found


def wrong_answer(operation: Operation[..., Any], content: dict[str, Any]) -> str:
    if operation.events:
        return "" if list(content) == ["text/event-stream"] else "it answers no stream"
    if operation.answer in (type(None), bytes):
        return "" if "application/json" not in content else "it answers JSON"
    told = content.get("application/json", {}).get("schema")
    return "" if without_nulls(told) == without_nulls(schema_of(operation.answer)) else f"the answer is {told}"


def without_nulls(schema: Any) -> Any:
    """The framework leaves a default of null out, and JSON has lists for tuples."""
    if isinstance(schema, list | tuple):
        return [without_nulls(one) for one in schema]
    if isinstance(schema, dict):
        return {key: without_nulls(value) for key, value in schema.items() if value is not None}
    return schema


def is_within(ours: Any, told: Any) -> bool:
    """Every word of our schema is in the document's, which may say more."""
    if isinstance(ours, dict) and isinstance(told, dict):
        return all(key in told and is_within(value, told[key]) for key, value in ours.items())
    return bool(ours == told)


def example(annotation: Any) -> Any:
    """Something to build a call with; a body goes through untouched."""
    kind = next((one for one in get_args(annotation) if one is not type(None)), annotation)
    return {str: "x", int: 7, float: 7.0, bool: True}.get(kind, object())
