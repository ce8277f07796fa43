"""Is there anything in a definition that may be of any size?"""

from typing import Any

import msgspec
import pytest

from hansa.services import BadService, Service, bounds

MANY = 300
TEXT = "x" * 20_000
STORE = {"endpoint": "https://s3.example.org"}


def service(**fields: Any) -> Service:
    return msgspec.convert({"name": "gray", "image": "debian", "script": "echo", **fields}, Service)


def named(count: int, value: Any = "") -> dict[str, Any]:
    return {f"n{number}": value for number in range(count)}


def member(**fields: Any) -> dict[str, Any]:
    return {"type": "endpoint", "url": "https://example.org", **fields}


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("input", {"input": [{"path": "a/b"}] * MANY}),
        ("output", {"output": [{"path": "a/b"}] * MANY}),
        ("input.suffix", {"input": [{"path": "a/b", "suffix": ["x"] * MANY}]}),
        ("output.prefix", {"output": [{"path": "a/b", "prefix": ["x"] * MANY}]}),
        ("output", {"output": [{"path": "a/b", "options": TEXT}]}),
        ("mount.storage_provider", {"mount": {"path": "a/b", "storage_provider": TEXT}}),
        ("allowed_users", {"allowed_users": ["x"] * MANY}),
        ("allowed_users", {"allowed_users": [TEXT]}),
        ("image_pull_secrets", {"image_pull_secrets": ["x"] * MANY}),
        ("annotations", {"annotations": named(MANY)}),
        ("annotations", {"annotations": {TEXT: ""}}),
        ("annotations", {"annotations": named(20, TEXT)}),
        ("labels", {"labels": named(MANY)}),
        ("labels", {"labels": {"a": TEXT}}),
        ("clusters", {"clusters": named(MANY, {})}),
        ("clusters", {"clusters": {"a": {"auth_password": TEXT}}}),
        ("environment", {"environment": {"variables": named(MANY)}}),
        ("environment", {"environment": {"secrets": named(MANY)}}),
        ("environment", {"environment": {"variables": named(10, TEXT), "secrets": named(10, TEXT)}}),
        ("variable n0", {"environment": {"secrets": named(1, TEXT * 7)}}),
        ("expose.api_port", {"expose": {"api_port": [80] * MANY}}),
        ("storage_providers", {"storage_providers": {"s3": named(MANY, STORE)}}),
        ("storage_providers", {"storage_providers": named(MANY, {})}),
        ("a store in storage_providers", {"storage_providers": {"s3": {"a": named(MANY)}}}),
        ("storage_providers", {"storage_providers": {"s3": {"a": {"secret_key": TEXT}}}}),
        ("federation.members", {"federation": {"members": [member()] * MANY}}),
        ("headers of a federation member", {"federation": {"members": [member(headers=named(MANY))]}}),
        ("headers of a federation member", {"federation": {"members": [member(headers={"a": TEXT})]}}),
        ("federation.weights", {"federation": {"weights": named(MANY, 1.0)}}),
    ],
)
def test_too_much_is_refused_by_name(field: str, fields: dict[str, Any]) -> None:
    with pytest.raises(BadService, match=f"^{field} (has|have|is|are) "):
        bounds.check(service(**fields))


def test_what_people_write_fits() -> None:
    bounds.check(
        service(
            environment={"variables": named(200, "x" * 500), "secrets": {"KEY": TEXT * 6}},
            annotations=named(100, "x" * 1000),
            storage_providers={"s3": named(100, {**STORE, "secret_key": "x" * 1000})},
            federation={"members": [member(headers={"Authorization": "x" * 8000})] * 100},
        )
    )
