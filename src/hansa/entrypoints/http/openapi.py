"""What do our routes take and give, in OpenAPI's words? Made from the msgspec structs the doors really use.

`openapi_extra=native_body(Struct, example)` declares the body of a native route, `body_of` of one of OSCAR's, where
null means "not given"; `responses=answers(400, 404)` the refusals, `result(200, Struct)` an answer. Routes that use
`result` or `answers(200)` set `response_class=Response`, so that the framework does not promise JSON where there is
none.
"""

from typing import Any, Literal

import msgspec

_MEANING = {
    200: "Done",
    201: "Made",
    202: "Accepted",
    204: "Done, nothing to say",
    400: "The request is not valid",
    401: "No credentials, or not accepted ones",
    403: "The caller may not do this, or a quota is used up",
    404: "There is no such thing, or the caller may not know of it",
    409: "It contradicts what exists",
    413: "The body is too large",
    429: "Too many wrong passwords came from this address, or you have too much under way at once",
    500: "Something went wrong here",
    502: "A part behind us gave no good answer",
    503: "A part we need is not available now; try again",
    504: "It took too long",
}
_EMPTY = frozenset({201, 204})
_TEXT = {"text/plain": {"schema": {"type": "string"}}}
_JSON_ERROR = {
    "application/json": {
        "schema": {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    }
}
_PROBLEM = {
    "application/problem+json": {
        "schema": {
            "type": "object",
            "properties": {
                "type": {"type": "string"},
                "title": {"type": "string"},
                "status": {"type": "integer"},
                "detail": {"type": "string"},
                "hint": {"type": "string"},
            },
            "required": ["type", "title", "status"],
        }
    }
}
_REFUSALS = {"text": _TEXT, "json": _JSON_ERROR, "problem": _PROBLEM}
Refusal = Literal["text", "json", "problem"]
Responses = dict[int | str, dict[str, Any]]


def answers(*statuses: int, errors: Refusal = "text", body: Literal["json", "text", "empty"] = "json") -> Responses:
    """Each status with its meaning; 503 is always possible, 429 where a password is asked for. `errors` is how refusals
    look here, `body` what a success carries (201 and 204 carry nothing; use `result` where a success has a shape)."""
    too_many = {429} if 401 in statuses else set()
    return {status: _answer(status, errors, body) for status in sorted({*statuses, *too_many, 503})}


def _answer(status: int, errors: Refusal, body: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": _MEANING.get(status, "As said")}
    if status >= 400:
        answer["content"] = _REFUSALS[errors]
    elif status not in _EMPTY and body != "empty":
        answer["content"] = _TEXT if body == "text" else {"application/json": {"schema": {}}}
    return answer


def result(status: int, *kinds: Any, csv: bool = False) -> Responses:
    """A success whose JSON has the shape of a kind: a struct, or `list[Struct] | None` and the like."""
    shapes = [schema_of(kind) for kind in kinds]
    schema = shapes[0] if len(shapes) == 1 else {"anyOf": shapes}
    content: dict[str, Any] = {"application/json": {"schema": schema}}
    if csv:
        content["text/csv"] = {"schema": {"type": "string"}}
    return {status: {"description": _MEANING[status], "content": content}}


def body_of(kind: Any, example: Any, rules: dict[str, Any] | None = None, **constraints: Any) -> dict[str, Any]:
    """The body a route decodes with `wire.decode`, which takes null for "not given". `rules` and `constraints` are
    words of JSON Schema for what a struct cannot say: `rules` at any depth, `constraints` for the whole, such as
    `anyOf=at_least_one(...)`."""
    schema = {**_nullable(_merged(schema_of(kind), rules or {})), **constraints}
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": schema, "example": example}},
        },
        "responses": {"413": {"description": _MEANING[413], "content": _TEXT}},
    }


def native_body(kind: Any, example: Any, fields: dict[str, Any] | None = None) -> dict[str, Any]:
    """The body a route decodes with `wire.decode_native`: as its type says, null only where that says so. `fields` are
    schemas of fields whose type does not say all."""
    schema = schema_of(kind)
    schema = {**schema, "properties": {**schema["properties"], **(fields or {})}}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": example}}}}


def raw_body(description: str) -> dict[str, Any]:
    """Any bytes at all."""
    content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {"requestBody": {"required": False, "description": description, "content": content}}


def at_least_one(*names: str) -> list[dict[str, Any]]:
    """One of these fields is given, and neither as null nor as an empty text."""
    return [{"required": [name], "properties": {name: {"not": {"enum": [None, ""]}}}} for name in names]


def schema_of(kind: Any) -> dict[str, Any]:
    """The whole schema in one piece: a route cannot add named parts to the document."""
    (schema,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    whole = _inlined(schema, parts)
    assert isinstance(whole, dict)
    return whole


def _inlined(node: Any, parts: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(inner, parts) for inner in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _inlined({**parts[node["$ref"]], **rest}, parts)
    return {key: _inlined(inner, parts) for key, inner in node.items()}


def _merged(schema: dict[str, Any], rules: dict[str, Any]) -> dict[str, Any]:
    inner = {
        word: _merged(schema[word], rule) if isinstance(rule, dict) and isinstance(schema.get(word), dict) else rule
        for word, rule in rules.items()
    }
    return {**schema, **inner}


def _nullable(node: Any) -> Any:
    """Every field that may be left out may also be null, at every depth."""
    if isinstance(node, list):
        return [_nullable(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    node = {key: _nullable(inner) for key, inner in node.items()}
    required = node.get("required", ())
    if node.get("type") == "object" and isinstance(node.get("properties"), dict):
        node["properties"] = {
            name: field if name in required or field.get("type") == "null" else _or_null(field)
            for name, field in node["properties"].items()
        }
    return node


def _or_null(field: dict[str, Any]) -> dict[str, Any]:
    if {"type": "null"} in field.get("anyOf", ()):
        return field
    inner = {key: value for key, value in field.items() if key != "default"}
    return {"anyOf": [inner, {"type": "null"}]}
