"""`/v1/replicas/{name}`: what managers of other clusters ask about a replica here, with secrets of that replica alone.

Its coordinator shows the replica's key to read, change and remove it; whoever gives it jobs shows its token to ask how
this cluster and its jobs fare. No token of a person has to leave its cluster for any of it.
"""

from fastapi import APIRouter, Request
from starlette.responses import Response

from hansa.bootstrap import App
from hansa.entrypoints.http import render
from hansa.entrypoints.http import status as status_view
from hansa.entrypoints.http.context import AppDep, ViewsDep, log_as, secret_of
from hansa.entrypoints.http.document import REPLICA_KEY, SERVICE, callable_by
from hansa.entrypoints.http.openapi import answers, result
from hansa.entrypoints.http.oscar.service_body import service_body
from hansa.entrypoints.http.parameters import Flag, JobsPage, ServiceName, flag
from hansa.entrypoints.http.shapes import JobListing, ServiceShown
from hansa.entrypoints.http.wire import JsonAnswer, read_document
from hansa.identity import Caller
from hansa.services import Service, creation, history, reading, replicas

router = APIRouter(prefix="/v1/replicas/{name}", tags=["federation"], default_response_class=Response)


@router.get(
    "",
    responses=result(200, ServiceShown) | answers(400, 401, errors="problem"),
    openapi_extra=callable_by(REPLICA_KEY),
)
async def read(request: Request, app: AppDep, views: ViewsDep, name: ServiceName, settled: Flag = "") -> Response:
    """The replica's definition; with `settled=true` once no change of it is under way."""
    if flag("settled", settled):
        await reading.settled(app.room, name)
    caller = _by_key(app, request, name)
    return JsonAnswer(views.of(reading.owned(app.room, caller, name), full=True, deployment=False))


@router.put(
    "",
    status_code=204,
    responses=answers(204, 400, 401, 409, 413, 503, errors="problem", body="empty"),
    openapi_extra=service_body() | callable_by(REPLICA_KEY),
)
async def update(request: Request, app: AppDep, name: ServiceName) -> Response:
    """The replica's new definition; blank secrets stay as they were."""
    caller = _by_key(app, request, name)
    definition = await read_document(request, Service, caller.uid)
    replicas.check_change(app.room, name, definition)
    await creation.update(app.room, caller, definition)
    return Response(status_code=204)


@router.delete(
    "",
    status_code=204,
    responses=answers(204, 400, 401, 503, errors="problem", body="empty"),
    openapi_extra=callable_by(REPLICA_KEY),
)
async def remove(request: Request, app: AppDep, name: ServiceName) -> Response:
    """The replica is not wanted any more."""
    caller = _by_key(app, request, name)
    await creation.delete(app.room, caller, name)
    return Response(status_code=204)


@router.get("/status", responses=answers(200, 400, 401, errors="problem"), openapi_extra=callable_by(SERVICE))
async def status(request: Request, app: AppDep, name: ServiceName) -> Response:
    """What room this cluster has."""
    _by_token(app, request, name)
    return JsonAnswer({"cluster": status_view.cluster(app.nodes.look())})


@router.get(
    "/jobs", responses=result(200, JobListing) | answers(400, 401, errors="problem"), openapi_extra=callable_by(SERVICE)
)
async def jobs(request: Request, app: AppDep, name: ServiceName, page: JobsPage = "") -> Response:
    """The replica's jobs, newest first."""
    caller = _by_token(app, request, name)
    return JsonAnswer(render.job_page(await history.page(app.room, caller, name, page)))


def _by_key(app: App, request: Request, name: str) -> Caller:
    """A coordinator acts for the owner, but it is not the owner who asks."""
    caller = replicas.by_key(app.room, name, secret_of(request, "replicakey"))
    log_as(f"key of service {name}")
    return caller


def _by_token(app: App, request: Request, name: str) -> Caller:
    caller = replicas.by_token(app.room, name, secret_of(request, "bearer"))
    log_as(f"service {name}")
    return caller
