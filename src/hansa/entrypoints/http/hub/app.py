"""The hub's two applications: one answers people, one what managers say and ask over mutual TLS."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp

from hansa import __version__
from hansa.bootstrap import HubApp
from hansa.entrypoints.http import document, problems
from hansa.entrypoints.http.door import Door
from hansa.entrypoints.http.hub import (
    backups,
    clusters,
    configs,
    inventory,
    joining,
    members,
    policies,
    probes,
    status,
    trust,
)
from hansa.entrypoints.http.openapi import answers
from hansa.kernel.errors import HansaError

_PEOPLE: tuple[ModuleType, ...] = (probes, inventory, clusters, status, configs, policies, backups, trust)
_MEMBERS: tuple[ModuleType, ...] = (joining,)

_ABOUT = """The hub of a Hansa federation: which clusters belong to it, how they are, and what they all should know.

Any signed-in person may read; the admin may change. Errors are problem+json with a stable code and a hint."""


class _Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            routes = [route for module in _PEOPLE for route in module.router.routes]
            self.openapi_schema = document.describe_native(self, routes)
        return self.openapi_schema


def for_people(app: HubApp) -> FastAPI:
    api = _Api(
        title="Hansa hub",
        version=__version__,
        description=_ABOUT,
        redirect_slashes=False,
        docs_url="/docs",
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    _equip(api, app, _PEOPLE, app.telemetry.registry)

    @api.get("/metrics", tags=["system"], response_class=Response, responses=answers(200, body="text"))
    async def telemetry() -> Response:
        """What Prometheus collects."""
        return Response(generate_latest(app.telemetry.registry), media_type=CONTENT_TYPE_LATEST)

    return api


def for_members(app: HubApp) -> ASGIApp:
    """Managers are told what to call by their own version; there is no document of it."""
    api = FastAPI(redirect_slashes=False, docs_url=None, redoc_url=None, openapi_url=None)
    _equip(api, app, _MEMBERS, CollectorRegistry())
    return members.Shortcut(app, api)


def _equip(api: FastAPI, app: HubApp, modules: Sequence[ModuleType], registry: CollectorRegistry) -> None:
    api.state.hansa = app
    for module in modules:
        api.include_router(module.router)
    api.add_exception_handler(HansaError, problems.as_answer)
    api.add_exception_handler(HTTPException, problems.as_http_answer)
    api.add_exception_handler(RequestValidationError, problems.as_validation_answer)
    api.add_middleware(Door, registry=registry)
