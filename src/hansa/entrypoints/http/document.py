"""The OpenAPI document as a whole: the framework's, with who may call what and without what never happens.

A route that asks for its caller takes the admin or a user; a route with other rules says so in `openapi_extra`.
"""

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from hansa.entrypoints.http.context import caller_of

ADMIN, USER, SERVICE = "admin", "user", "service-token"
PERMIT, GROUP_KEY, REPLICA_KEY, METRICS = "permit", "group-key", "replica-key", "metrics-token"
STORE = "store-token"
_SCHEMES = {
    ADMIN: {"type": "http", "scheme": "basic", "description": "The cluster's admin."},
    USER: {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "An access token of one of the issuers this cluster trusts.",
    },
    SERVICE: {"type": "http", "scheme": "bearer", "description": "A service's own token, 64 hexadecimal characters."},
    PERMIT: {"type": "http", "scheme": "permit", "description": "What a manager got with a job; only managers use it."},
    METRICS: {"type": "http", "scheme": "bearer", "description": "The operator's `http.metrics_token`."},
    STORE: {"type": "http", "scheme": "bearer", "description": "What the object store was told to show."},
    GROUP_KEY: {"type": "http", "scheme": "groupkey", "description": "What the managers of one federation share."},
    REPLICA_KEY: {"type": "http", "scheme": "replicakey", "description": "What a replica's coordinator alone knows."},
}
_METHODS = frozenset({"get", "put", "post", "delete", "patch"})


# Where a path's name comes from: these routes make what it names, under the name in this field of their body.
_MADE_BY = {
    "/system/services": (("name", "service"), "name"),
    "/system/buckets": (("bucket",), "bucket_name"),
    "/system/volumes": (("volume",), "name"),
}


def callable_by(*schemes: str) -> dict[str, Any]:
    """For `openapi_extra` of a route that signs in by rules of its own."""
    return {"security": [{scheme: []} for scheme in schemes]}


def describe_native(api: FastAPI, routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """The document of native routes; `routes` are those that may ask for their caller."""
    document = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
    document.setdefault("components", {})["securitySchemes"] = _SCHEMES
    for schema in ("HTTPValidationError", "ValidationError"):
        document["components"].get("schemas", {}).pop(schema, None)
    signed_in = {
        (route.path_format, method.lower())
        for route in routes
        if isinstance(route, APIRoute) and any(need.call is caller_of for need in route.dependant.dependencies)
        for method in route.methods or ()
    }
    for path, item in document["paths"].items():
        for method in _METHODS & item.keys():
            operation = item[method]
            operation["responses"].pop("422", None)  # wrong parameters are a 400 here
            if (path, method) in signed_in:
                operation.setdefault("security", [{ADMIN: []}, {USER: []}])
    return document


def describe(api: FastAPI, routes: Iterable[BaseRoute], more: dict[str, Any]) -> dict[str, Any]:
    """The whole document; `routes` are those that may ask for their caller, `more` what the framework does not know."""
    document = describe_native(api, routes)
    document["paths"] |= more
    _link(document["paths"])
    return document


def _link(paths: dict[str, Any]) -> None:
    """From each creation to what can be done with what it made; from a job's start to its log."""
    for maker, (parameters, field) in _MADE_BY.items():
        made = paths[maker]["post"]["responses"]["201"].setdefault("links", {})
        for path, item in paths.items():
            for parameter in (one for one in parameters if f"{{{one}}}" in path and "{job}" not in path):
                for method in _METHODS & item.keys():
                    if target := item[method].get("operationId"):
                        made[target] = {"operationId": target, "parameters": {parameter: f"$request.body#/{field}"}}
    started = paths["/job/{service}"]["post"]["responses"]["201"].setdefault("links", {})
    for operation in paths["/system/logs/{service}/{job}"].values():
        names = {"service": "$request.path.service", "job": "$response.header.X-Hansa-Job"}
        started[operation["operationId"]] = {"operationId": operation["operationId"], "parameters": names}
