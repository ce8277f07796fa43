"""What a service's definition looks like in the OpenAPI document: the struct, and the rules a struct cannot say.

The rules are those of `hansa.services.validation`, a little narrower where only a parser could say them in full
(quantities, paths, image names), so that what the document allows is accepted.
"""

from typing import Any

from hansa.entrypoints.http.openapi import body_of
from hansa.entrypoints.http.parameters import SERVICE_NAME
from hansa.services import Service

EXAMPLE = {
    "name": "hello",
    "image": "debian",
    "cpu": "0.5",
    "memory": "128Mi",
    "script": "cat $INPUT_FILE_PATH",
    "input": [{"storage_provider": "minio.default", "path": "hello/in"}],
    "output": [{"storage_provider": "minio.default", "path": "hello/out"}],
}
_CPU = {"pattern": r"^([1-9][0-9]{0,2}(\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9]|[1-9][0-9]{0,5}m)$"}
_MEMORY = {"pattern": r"^[1-9][0-9]{0,5}(\.[0-9]{1,2})?(Ki|Mi|Gi|k|M|G)?$"}
_AMOUNT = {"pattern": r"^([1-9][0-9]{0,5}(m|k|M|G|Ki|Mi|Gi)?)?$"}
_SCALE = {"minimum": 0, "maximum": 100}
_PORTS = {"items": {"type": "integer", "minimum": 1, "maximum": 65535}, "maxItems": 1}
_VARIABLES = {"propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_.-]{0,60}$"}, "maxProperties": 256}
_FEW = {"maxItems": 256}
_PATH = {"pattern": "^[a-z0-9][a-z0-9-]{1,40}[a-z0-9]/[A-Za-z0-9_-]{1,60}$"}


def _folders(*providers: str) -> dict[str, Any]:
    rules = {"path": _PATH, "storage_provider": {"enum": list(providers)}}
    return {"maxItems": 256, "items": {"properties": rules, "required": ["path", "storage_provider"]}}


_RULES: dict[str, Any] = {
    "required": ["name", "image", "script"],
    "properties": {
        "name": SERVICE_NAME,
        "image": {"pattern": "^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,255}$"},
        "script": {"pattern": r"\S", "maxLength": 2**20},
        "cpu": _CPU,
        "memory": _MEMORY,
        "total_cpu": _AMOUNT,
        "total_memory": _AMOUNT,
        "ephemeral_storage_request": _AMOUNT,
        "visibility": {"enum": ["", "private", "restricted", "public"]},
        "synchronous": {"properties": {"min_scale": {"enum": [0]}, "max_scale": _SCALE}},
        "expose": {
            "properties": {
                "min_scale": _SCALE,
                "cpu_threshold": _SCALE,
                "max_scale": _SCALE,
                "api_port": _PORTS,
                "nodePort": {"maxItems": 0},
                "auth_type": {"enum": ["", "basic", "forward"]},
                "probe_mode": {"enum": ["", "legacy", "direct"]},
                "health_path": {"pattern": "^(/[A-Za-z0-9_-]{1,60})?$"},
            }
        },
        "environment": {"properties": {"variables": _VARIABLES, "secrets": _VARIABLES}},
        "annotations": {"maxProperties": 256},
        "labels": {"maxProperties": 256},
        "clusters": {"maxProperties": 256},
        "allowed_users": _FEW,
        "image_pull_secrets": _FEW,
        "input": _folders("minio", "minio.default"),
        "output": _folders("minio", "minio.default"),
        "mount": {
            "properties": {
                "path": {"pattern": "^([a-z0-9][a-z0-9-]{1,40}[a-z0-9]/[A-Za-z0-9_-]{1,60})?$"},
                "storage_provider": {"enum": ["minio", "minio.default"]},
                "options": {"pattern": "^[A-Za-z0-9_.:=,/ -]*$"},
            }
        },
    },
}


def service_body() -> dict[str, Any]:
    """For `openapi_extra` of the routes that take a whole definition."""
    return body_of(Service, EXAMPLE, _RULES)
