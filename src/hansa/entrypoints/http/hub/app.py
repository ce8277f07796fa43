"""The hub's two applications: one answers people, one what managers say and ask over mutual TLS."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from hansa import __version__
from hansa.bootstrap import HubApp
from hansa.entrypoints.http import api_page, document, figures, problems
from hansa.entrypoints.http.door import Door
from hansa.entrypoints.http.hub import (
    addresses,
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
from hansa.entrypoints.http.in_flight import InFlight
from hansa.kernel.errors import HansaError

_PEOPLE: tuple[ModuleType, ...] = (probes, inventory, clusters, addresses, status, configs, policies, backups, trust)
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
        docs_url=None,  # it would load scripts from elsewhere; `api_page` is ours
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    _equip(api, app, _PEOPLE, app.telemetry.registry)
    figures.add_to(api, app.telemetry.registry, app.sign_in, app.settings.http.metrics_token.get_secret_value())
    api_page.add_to(api)
    return api


def for_members(app: HubApp) -> ASGIApp:
    """Managers are told what to call by their own version; there is no document of it."""
    api = FastAPI(redirect_slashes=False, docs_url=None, redoc_url=None, openapi_url=None)
    _equip(api, app, _MEMBERS, CollectorRegistry())
    return members.Shortcut(app, api, api.state.bodies)


def _equip(api: FastAPI, app: HubApp, modules: Sequence[ModuleType], registry: CollectorRegistry) -> None:
    api.state.hansa = app
    for module in modules:
        api.include_router(module.router)
    api.add_exception_handler(HansaError, problems.as_answer)
    api.add_exception_handler(HTTPException, problems.as_http_answer)
    api.add_exception_handler(RequestValidationError, problems.as_validation_answer)
    api.state.bodies = InFlight(app.settings.http.bodies_limit)
    api.add_middleware(Door, registry=registry, bodies=api.state.bodies)
