"""The HTTP application: every router, every error handler, one door in front."""

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from hansa import __version__
from hansa.bootstrap import App
from hansa.entrypoints.http import api_page, document, figures, problems
from hansa.entrypoints.http.door import Door
from hansa.entrypoints.http.exposed import routes as exposed
from hansa.entrypoints.http.exposed.limits import Limits
from hansa.entrypoints.http.exposed.origins import Origins, PagesOnly
from hansa.entrypoints.http.exposed.transport import ExposedPools
from hansa.entrypoints.http.in_flight import InFlight
from hansa.entrypoints.http.oscar import (
    buckets,
    federation,
    jobs,
    logs,
    metrics,
    quotas,
    services,
    system,
    volumes,
)
from hansa.entrypoints.http.render import ServiceViews
from hansa.entrypoints.http.v1 import delegations, membership, node, replicas, store_news, tokens
from hansa.kernel.errors import HansaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# looked through in this order at every request, so what is called most stands first
_ROUTERS = (
    jobs,
    services,
    node,
    delegations,
    system,
    logs,
    federation,
    buckets,
    volumes,
    quotas,
    metrics,
    tokens,
    replicas,
    membership,
    store_news,
)


_ABOUT = """One cluster of a Hansa federation: OSCAR's API under /system, /job and /run, ours under /v1.

OSCAR's routes take JSON whatever its Content-Type and keys in any case, ignore fields and parameters they do not know,
take null as "not given", and answer a wrong method with 404. Their errors are text; those of /system/status and
/system/metrics are `{"error": ...}`; native ones are problem+json."""


class _Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            routes = [route for module in _ROUTERS for route in module.router.routes]
            self.openapi_schema = document.describe(self, routes, exposed.DESCRIBED)
        return self.openapi_schema


def make(app: App) -> FastAPI:
    """The application around an `App`, which starts and stops with it."""

    pools = ExposedPools(app.room.exposed_host)

    @asynccontextmanager
    async def life(_: FastAPI) -> "AsyncIterator[None]":
        try:
            yield
        finally:
            await pools.close()

    api = _Api(
        title="Hansa manager",
        version=__version__,
        description=_ABOUT,
        lifespan=life,
        redirect_slashes=False,
        docs_url=None,  # it would load scripts from elsewhere; `api_page` is ours
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    api.state.hansa = app
    api.state.views = ServiceViews(app.room.records, app.deployment_of, app.volumes.standing_of, app.why_uploads_wait)
    api.state.exposed_pools = pools
    api.state.exposed_limits = Limits()
    api.state.origins = Origins(app.settings.exposed)
    for module in _ROUTERS:
        api.include_router(module.router)
    api.router.routes.extend(exposed.ROUTES)

    figures.add_to(api, app.telemetry.registry, app.sign_in, app.settings.http.metrics_token.get_secret_value())
    api_page.add_to(api)
    api.add_exception_handler(HansaError, problems.as_answer)
    api.add_exception_handler(HTTPException, problems.as_http_answer)
    api.add_exception_handler(RequestValidationError, problems.as_validation_answer)
    http = app.settings.http
    bodies = InFlight(http.bodies_limit, http.body_limit)
    api.add_middleware(Door, registry=app.telemetry.registry, bodies=bodies, own_url=app.settings.cluster.public_url)
    return api


def for_all(api: FastAPI) -> ASGIApp:
    """What the manager's own port answers: everything; at a host name for tenants' pages only those."""
    origins: Origins = api.state.origins
    return PagesOnly(api, origins, always=False) if origins.settings.url else api


def for_pages(api: FastAPI) -> ASGIApp:
    """What a port for tenants' pages answers."""
    return PagesOnly(api, api.state.origins, always=True)
