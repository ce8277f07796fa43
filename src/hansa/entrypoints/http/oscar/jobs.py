"""`POST /job/{service}` accepts a job, `POST /run/{service}` runs one while the caller waits."""

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from hansa.bootstrap import App
from hansa.entrypoints.http import in_flight
from hansa.entrypoints.http.context import AppDep, authorization_of, log_caller
from hansa.entrypoints.http.document import SERVICE, USER, callable_by
from hansa.entrypoints.http.openapi import answers, raw_body
from hansa.entrypoints.http.parameters import ServiceName
from hansa.entrypoints.http.wire import read_body
from hansa.identity import Basic, Caller, looks_like_service_token, parse_authorization, service_caller
from hansa.kernel import names
from hansa.kernel.errors import Invalid, Unauthenticated
from hansa.services import Invocation, delegation, replicas, submission

router = APIRouter(tags=["jobs"], default_response_class=Response)
_LONGEST_REASON = 500

DelegatedJob = Annotated[
    str,
    Header(
        alias="X-Delegated-Job-ID",
        description="The job's name, given by the cluster that hands it over; the same name twice is one job",
        json_schema_extra={"pattern": "^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$"},
    ),
]


async def _invoker(app: App, request: Request, service: str) -> Caller:
    """A service token or a user's access token; the admin's Basic is not accepted here, as in OSCAR."""
    names.service(service)
    given = parse_authorization(authorization_of(request))
    if isinstance(given, Basic):
        raise Unauthenticated(
            "Basic credentials start no jobs", hint="send the service's token or an access token as bearer"
        )
    if looks_like_service_token(given.token):
        record = app.room.records.get(service)
        known = record if record is not None and record.phase == "ready" else None
        giver = replicas.giver_of(app.room, known, given.token) if known is not None else None
        if known is not None and giver is not None:
            return log_caller(Caller.of_service(service, known.service.owner, giver=giver))
        return service_caller(given.token, service=service, owner="", expected="")
    return log_caller(await app.sign_in.user(given.token))


def _invocation(request: Request, kind: Literal["async", "sync"], service: str, user: str) -> Invocation:
    client = request.client.host if request.client else ""
    return Invocation(time.time(), kind, service, user[:255], 201, 0.0, client, "POST", f"/{_PATH[kind]}/{service}")


def _parcel(request: Request, job: str) -> delegation.Parcel | None:
    """What another Hansa sends along when it hands a job over; OSCAR's own manager sends none of it."""
    permit, origin = request.headers.get("x-hansa-permit", ""), request.headers.get("x-hansa-origin", "")
    if not (permit and origin and job):
        return None
    path = tuple(part.strip() for part in request.headers.get("x-hansa-path", "").split(",") if part.strip())
    if len(permit) != 64 or len(path) > 64 or any(len(cluster) > 255 for cluster in (origin, *path)):
        raise Invalid("the headers of this delegated job are not valid")
    return delegation.Parcel(job, origin, path or (origin,), permit)


_PATH = {"async": "job", "sync": "run"}


@router.post(
    "/job/{service}",
    status_code=201,
    responses=answers(201, 400, 401, 403, 404, 409, 413, 503),
    openapi_extra=raw_body("The input: an object store's event, or anything the script can read.")
    | callable_by(SERVICE, USER),
)
async def submit(request: Request, app: AppDep, service: ServiceName, delegated: DelegatedJob = "") -> Response:
    """Accepted means it will run. The header `X-Hansa-Job` names the job."""
    caller = await _invoker(app, request, service)
    wanted = delegated.strip()
    if wanted:
        names.job(wanted)
    submission.invocable(app.room, caller, service)  # or its body is not even read
    body = await read_body(request, app.settings.http.body_limit, caller.uid)
    noted = _invocation(request, "async", service, caller.uid)
    has_own_row = app.calls.has_own_row(noted)
    job = await submission.submit(
        app.room,
        caller,
        service,
        body,
        job_name=wanted,
        invocation=noted if has_own_row else None,
        parcel=_parcel(request, wanted),
        authorization=request.headers.get("authorization", ""),
    )
    if not has_own_row:
        app.calls.count(noted)
    return Response(status_code=201, headers={"X-Hansa-Job": job.name})


@router.post(
    "/run/{service}",
    responses=answers(200, 400, 401, 403, 404, 413, 502, 503, body="text"),
    openapi_extra=raw_body("The input the script finds at $INPUT_FILE_PATH.") | callable_by(SERVICE, USER),
)
async def run(request: Request, app: AppDep, service: ServiceName) -> Response:
    """Answers with the script's output: a file as base64, several as a base64 zip, else what it printed.
    A script that fails is a 502 with its output and the headers `X-Hansa-Exit-Code` and `X-Hansa-Reason`."""
    started = time.perf_counter()
    caller = await _invoker(app, request, service)
    submission.invocable(app.room, caller, service)
    body = await read_body(request, app.settings.http.body_limit, caller.uid)
    noted = _invocation(request, "sync", service, caller.uid)
    status = 503
    try:
        job = request.headers.get("x-delegated-job-id", "").strip()
        parcel = _parcel(request, job)
        reply = await submission.run(
            app.room,
            caller,
            service,
            body,
            parcel=parcel,
            spill=app.spill,
            authorization=request.headers.get("authorization", ""),
            weigh=in_flight.claim_of(request.scope).hold,
        )
        status = 200 if reply.exit_code == 0 else 502
        headers = {} if reply.exit_code is None else {"X-Hansa-Exit-Code": str(reply.exit_code)}
        if reply.reason:
            headers["X-Hansa-Reason"] = _header_text(reply.reason)
        return Response(
            reply.body if reply.exit_code == 0 or reply.body else f"{reply.reason}\n".encode(),
            status,
            headers,
            media_type="text/plain",
        )
    finally:
        app.calls.add(submission.with_status(noted, status, time.perf_counter() - started))


def _header_text(reason: str) -> str:
    """Headers hold one line of ASCII."""
    return " ".join(reason.encode("ascii", "replace").decode().split())[:_LONGEST_REASON]
