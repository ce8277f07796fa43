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
_SCHEMES = {
    ADMIN: {"type": "http", "scheme": "basic", "description": "The cluster's admin."},
    USER: {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "An access token of one of the issuers this cluster trusts.",
    },
    SERVICE: {"type": "http", "scheme": "bearer", "description": "A service's own token, 64 hexadecimal characters."},
}
_METHODS = frozenset({"get", "put", "post", "delete", "patch"})


def callable_by(*schemes: str) -> dict[str, Any]:
    """For `openapi_extra` of a route that signs in by rules of its own."""
    return {"security": [{scheme: []} for scheme in schemes]}


def describe(api: FastAPI, routes: Iterable[BaseRoute], more: dict[str, Any]) -> dict[str, Any]:
    """The whole document; `routes` are those that may ask for their caller, `more` what the framework does not know."""
    document = get_openapi(title=api.title, version=api.version, description=api.description, routes=api.routes)
    document["paths"] |= more
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
