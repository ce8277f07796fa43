"""The HTTP application: every router, every error handler, one door in front."""

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.responses import Response

from hansa import __version__
from hansa.bootstrap import App
from hansa.entrypoints.http import document, problems
from hansa.entrypoints.http.door import Door
from hansa.entrypoints.http.exposed_transport import ExposedPools
from hansa.entrypoints.http.openapi import answers
from hansa.entrypoints.http.oscar import (
    buckets,
    exposed,
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
from hansa.entrypoints.http.v1 import delegations, membership, node, tokens
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
    membership,
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
        docs_url="/docs",
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    api.state.hansa = app
    api.state.views = ServiceViews(app.room.records, app.deployment_of, app.volumes.standing_of)
    api.state.exposed_pools = pools
    for module in _ROUTERS:
        api.include_router(module.router)
    api.router.routes.extend(exposed.ROUTES)

    @api.get("/metrics", tags=["system"], response_class=Response, responses=answers(200, body="text"))
    async def telemetry() -> Response:
        """What Prometheus collects."""
        return Response(generate_latest(app.telemetry.registry), media_type=CONTENT_TYPE_LATEST)

    api.add_exception_handler(HansaError, problems.as_answer)
    api.add_exception_handler(HTTPException, problems.as_http_answer)
    api.add_exception_handler(RequestValidationError, problems.as_validation_answer)
    api.add_middleware(Door, registry=app.telemetry.registry)
    return api
