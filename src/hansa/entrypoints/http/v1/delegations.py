"""`/v1/delegations/{job}`: what two managers ask each other about a job one gave the other, by its permit.

`GET`, `…/log` and `DELETE` are answered where the job runs, `…/publish` and `…/storage` where it came from, or, of one
that was submitted to a replica (`…/adopted/{job}`), where its data is.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hansa import __version__
from hansa.entrypoints.http.clients import address_of
from hansa.entrypoints.http.context import AppDep, CallerDep, log_as, secret_of
from hansa.entrypoints.http.document import PERMIT, REPLICA_KEY, callable_by
from hansa.entrypoints.http.openapi import answers, raw_body
from hansa.entrypoints.http.parameters import JobName, ServiceName, Timestamps, flag
from hansa.entrypoints.http.wire import JsonAnswer, TextAnswer, read_body
from hansa.identity import access
from hansa.kernel import names
from hansa.kernel.errors import Conflict, Invalid, NotFound
from hansa.services import Adoption, adopting, history, receiving, secret_parts

_PERMIT = 64  # characters
router = APIRouter(prefix="/v1", tags=["federation"], default_response_class=Response)
CAPABILITIES = ("delegation-permits", "mesh-tokens", secret_parts.REPLICA_KEYS, adopting.ONWARD_KEYS)


class Superseded(Conflict):
    """Another run of this job was given precedence."""

    code = "delegation.superseded"


def _store(found: Mapping[str, str]) -> Response:
    shown = {"minio_provider": {**found, "verify": found.get("verify", "true") == "true"}}
    return JsonAnswer(shown, headers={"Cache-Control": "no-store"})


def _permit(request: Request) -> str:
    return secret_of(request, "permit")


@router.get("/about", responses=answers(200, errors="problem"))
async def about(app: AppDep) -> Response:
    """Which product answers here, and what it can do; peers ask before they rely on anything."""
    words = (*CAPABILITIES, app.room.home_mark) if app.room.home_mark else CAPABILITIES
    return JsonAnswer({"product": "hansa", "version": __version__, "capabilities": words})


@router.get(
    "/delegations/{job}",
    responses=answers(200, 400, 401, 404, errors="problem"),
    openapi_extra=callable_by(PERMIT),
)
async def state(request: Request, app: AppDep, job: JobName) -> Response:
    """How the job fares here."""
    return JsonAnswer(msgspec.to_builtins(await receiving.state(app.room, job, _permit(request))))


@router.get(
    "/delegations/{job}/log",
    responses=answers(200, 400, 401, 404, errors="problem", body="text"),
    openapi_extra=callable_by(PERMIT),
)
async def log(request: Request, app: AppDep, job: JobName, timestamps: Timestamps = "") -> Response:
    """What it printed so far."""
    return TextAnswer(await receiving.log(app.room, job, _permit(request), timestamps=flag("timestamps", timestamps)))


@router.delete(
    "/delegations/{job}",
    status_code=204,
    responses=answers(204, 400, 401, 404, errors="problem", body="empty"),
    openapi_extra=callable_by(PERMIT),
)
async def cancel(request: Request, app: AppDep, job: JobName) -> Response:
    """It is not wanted here any more."""
    await receiving.cancel(app.room, job, _permit(request))
    return Response(status_code=204)


@router.post(
    "/delegations/{job}/publish",
    status_code=204,
    responses=answers(204, 400, 401, 409, errors="problem", body="empty"),
    openapi_extra=callable_by(PERMIT),
)
async def publish(request: Request, app: AppDep, job: JobName) -> Response:
    """The first run that asks may show its outputs; every other one is told no."""
    permit = _permit(request)
    try:
        granted = await receiving.publish(app.room, job, permit)
    except NotFound:
        granted = False  # an outdated permit
    if not granted:
        raise Superseded(f"another run of job {job} was given precedence", hint="throw these outputs away")
    return Response(status_code=204)


@router.get(
    "/delegations/{job}/storage",
    responses=answers(200, 400, 401, 404, errors="problem"),
    openapi_extra=callable_by(PERMIT),
)
async def storage(request: Request, app: AppDep, job: JobName) -> Response:
    """Where the job's data is, with keys for no more than it needs."""
    return _store(await receiving.storage(app.room, job, _permit(request)))


@router.post(
    "/services/{service}/adopted/{job}",
    responses=answers(200, 400, 401, 403, 409, 413, 503, errors="problem"),
    openapi_extra=raw_body("What the job was submitted with.") | callable_by(REPLICA_KEY),
)
async def adopt(
    request: Request,
    app: AppDep,
    service: ServiceName,
    job: JobName,
    member: Annotated[str, Query(max_length=400)] = "",
    of: Annotated[str, Query(max_length=63)] = "",
) -> Response:
    """For replicas: a job was submitted there, in a mesh, or is handed on from there (`of`), and its data is here. Keys
    for that job alone; who submitted it may show their own token in X-Hansa-Caller."""
    key, permit = secret_of(request, "replicakey"), request.headers.get("x-hansa-permit", "")
    if len(permit) != _PERMIT:
        raise Invalid("the header X-Hansa-Permit is missing or not valid")
    owner = adopting.owner_behind(app.room, service, member, key)
    log_as(f"key of service {service}")
    shown = request.headers.get("x-hansa-caller", "")
    caller = await app.sign_in.caller(shown, address_of(request)) if shown else None
    event = await read_body(request, app.settings.http.body_limit, owner)
    wanted = Adoption(service, member, job, permit, of=of)
    store = await adopting.adopt(app.room, wanted, key, event, caller)
    return _store(store)


@router.get("/jobs/{job}", responses=answers(200, 400, 401, 403, 404, errors="problem"))
async def job(app: AppDep, caller: CallerDep, job: JobName) -> Response:
    """One job of ours with its whole story: where it went, and why there."""
    names.job(job)
    found = await app.room.jobs.get(job)
    if found is None or not (caller.is_admin or found.owner == caller.uid):
        raise NotFound(f"there is no job {job} of yours")
    shown: dict[str, Any] = {
        "name": found.name,
        "service": found.service,
        "status": found.status.value,
        "phase": found.phase,
        "created": found.created,
        "started": found.started,
        "finished": found.finished,
        "attempt": found.attempt,
        "exit_code": found.exit_code,
        "reason": history.why(app.room, found),
    }
    given = await app.room.delegations.get(job)
    if given is not None and given.cluster_id:
        shown["delegation"] = {
            "phase": given.phase,
            "epoch": given.epoch,
            "cluster_id": given.cluster_id,
            "service": given.service,
            "job": given.known_as,
            "decision": given.decision,
        }
    receipt = app.room.receipts.get(job)
    if receipt is not None and not receipt.ours:
        shown["received"] = {"from": receipt.origin, "path": receipt.path}
    return JsonAnswer(shown)


@router.get("/operations/{ident}", responses=answers(200, 401, 403, 404, errors="problem"))
async def operation(app: AppDep, caller: CallerDep, ident: str) -> Response:
    """How far a change over several clusters came."""
    found = await app.room.operations.get(ident) if len(ident) <= 63 and "\0" not in ident else None
    if found is None:
        raise NotFound(f"there is no operation {ident[:63]!r}")
    access.require_change(caller, f"operation {ident}", owner=found.owner)
    members = [{"member": one.key, "existed_before": one.existed, "undone": one.undone, "error": one.error}
               for one in found.plan]  # fmt: skip
    return JsonAnswer(
        {"id": found.id, "kind": found.kind, "service": found.subject, "state": found.state, "members": members}
    )
