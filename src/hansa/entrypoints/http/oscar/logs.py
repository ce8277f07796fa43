"""`/system/logs`: jobs of a service page by page, their logs, their deletion; and the manager's own execution log."""

from fastapi import APIRouter
from starlette.responses import Response

from hansa.entrypoints.http import render
from hansa.entrypoints.http.context import AppDep, CallerDep
from hansa.entrypoints.http.openapi import answers, result
from hansa.entrypoints.http.parameters import Flag, JobName, JobsPage, ServiceName, Timestamps, flag
from hansa.entrypoints.http.shapes import Executions, JobListing
from hansa.entrypoints.http.wire import JsonAnswer, TextAnswer
from hansa.identity import access
from hansa.kernel import clock
from hansa.services import Invocation, history

router = APIRouter(tags=["logs"], default_response_class=Response)
_MARK = "[GIN-EXECUTIONS-LOGGER]"  # what OSCAR's tooling looks for in a line


@router.get("/system/logs", responses=result(200, Executions) | answers(400, 401, 403))
async def executions(app: AppDep, caller: CallerDep, timestamps: Flag = "", previous: Flag = "") -> Response:
    """The latest requests to `/job` and `/run`, for the admin and the users with the admin's view. Every line has its
    time, and nothing older is kept apart, so the two flags of OSCAR's clients change nothing."""
    flag("timestamps", timestamps), flag("previous", previous)
    access.require_cluster_view(caller, "the execution log")
    return JsonAnswer({"logs": [_execution(one) for one in await app.room.jobs.invocations(1000)]})


def _execution(one: Invocation) -> dict[str, object]:
    at, latency, user = clock.rfc3339_nanos(one.at), f"{one.latency * 1000:.3f}ms", one.user or "oscar"
    raw = f"{_MARK} {at} | {one.status} | {latency} | {one.client_ip} | {one.method} {one.path} | {user}"
    return {
        "timestamp": at,
        "status": one.status,
        "latency": latency,
        "client_ip": one.client_ip,
        "method": one.method,
        "path": one.path,
        "user": user,
        "raw": raw,
    }


@router.get("/system/logs/{service}", responses=result(200, JobListing) | answers(400, 401, 403, 404))
async def jobs(app: AppDep, caller: CallerDep, service: ServiceName, page: JobsPage = "") -> Response:
    """The service's jobs, newest first."""
    return JsonAnswer(render.job_page(await history.page(app.room, caller, service, page)))


@router.delete("/system/logs/{service}", status_code=204, responses=answers(204, 400, 401, 403, 404))
async def delete_jobs(app: AppDep, caller: CallerDep, service: ServiceName, all: Flag = "") -> Response:
    """Forgets finished jobs; with `all=true` also ends the others."""
    await history.remove_all(app.room, caller, service, running_too=flag("all", all))
    return Response(status_code=204)


@router.get("/system/logs/{service}/{job}", responses=answers(200, 400, 401, 403, 404, body="text"))
async def job_log(
    app: AppDep, caller: CallerDep, service: ServiceName, job: JobName, timestamps: Timestamps = ""
) -> Response:
    """What the job printed so far."""
    return TextAnswer(await history.log(app.room, caller, service, job, timestamps=flag("timestamps", timestamps)))


@router.delete("/system/logs/{service}/{job}", status_code=204, responses=answers(204, 400, 401, 403, 404))
async def delete_job(app: AppDep, caller: CallerDep, service: ServiceName, job: JobName) -> Response:
    """Ends the job if it runs, and forgets it."""
    await history.remove(app.room, caller, service, job)
    return Response(status_code=204)
