"""`/system/services`: create, read, update, delete; deployment state, logs, start and stop of exposed ones."""

from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Request
from starlette.responses import Response

from hansa.entrypoints.http import render
from hansa.entrypoints.http.clients import address_of
from hansa.entrypoints.http.context import AppDep, CallerDep, ViewsDep, authorization_of, log_caller
from hansa.entrypoints.http.document import ADMIN, SERVICE, USER, callable_by
from hansa.entrypoints.http.exposed import visitors
from hansa.entrypoints.http.exposed.cookies import cookie_name
from hansa.entrypoints.http.exposed.paths import base_of
from hansa.entrypoints.http.openapi import answers, result
from hansa.entrypoints.http.oscar.service_body import service_body
from hansa.entrypoints.http.parameters import Flag, Include, ServiceName, Tail, Timestamps, flag, tail
from hansa.entrypoints.http.shapes import DeploymentLog, DeploymentShown, ServiceShown
from hansa.entrypoints.http.wire import JsonAnswer, TextAnswer, read_document, warned
from hansa.identity import VISIT_SECONDS, looks_like_service_token, service_caller
from hansa.kernel import clock, names
from hansa.kernel.errors import Unauthenticated
from hansa.services import NotExposed, Service, creation, reading

router = APIRouter(tags=["services"], default_response_class=Response)
_DEPLOYMENT = result(200, DeploymentShown) | answers(400, 401, 403, 404, 409)


@router.post(
    "/system/services",
    status_code=201,
    responses=answers(201, 400, 401, 403, 409, 413, 503),
    openapi_extra=service_body(),
)
async def create(request: Request, app: AppDep, caller: CallerDep) -> Response:
    """A new service with its buckets; ready for jobs when this answers."""
    definition = await read_document(request, Service, caller.uid)
    made = await creation.create(app.room, caller, definition, request.headers.get("authorization", ""))
    return warned(Response(status_code=201), made.notes)


@router.put(
    "/system/services",
    status_code=204,
    responses=answers(204, 400, 401, 403, 404, 409, 413, 503),
    openapi_extra=service_body(),
)
async def update(request: Request, app: AppDep, caller: CallerDep) -> Response:
    """A new definition of an existing service; blank secrets stay as they were."""
    definition = await read_document(request, Service, caller.uid)
    names.service(definition.name)
    done = await creation.update(app.room, caller, definition, request.headers.get("authorization", ""))
    if done.failures:
        return warned(TextAnswer(render.warnings(done.failures)), done.notes)
    return warned(Response(status_code=204), done.notes)


@router.get("/system/services", responses=result(200, list[ServiceShown]) | answers(400, 401))
async def list_all(app: AppDep, views: ViewsDep, caller: CallerDep, include: Include = "") -> Response:
    """All services the caller may see."""
    with_deployment = _wants_deployment(include)
    shown = [
        views.of(record, full=reading.has_full_view(caller, record), deployment=with_deployment)
        for record in reading.all_visible(app.room, caller)
    ]
    return JsonAnswer(b"[" + b",".join(shown) + b"]")


@router.get("/system/services/{name}", responses=result(200, ServiceShown) | answers(400, 401, 403, 404))
async def read(
    app: AppDep, views: ViewsDep, caller: CallerDep, name: ServiceName, include: Include = "", settled: Flag = ""
) -> Response:
    """The definition; its token and store keys only for its owner and the admin. With `settled=true` a change that is
    under way is waited for."""
    if flag("settled", settled):
        await reading.settled(app.room, name)
    record = reading.get(app.room, caller, name)
    full = reading.has_full_view(caller, record)
    return JsonAnswer(views.of(record, full=full, deployment=_wants_deployment(include)))


@router.delete("/system/services/{name}", status_code=204, responses=answers(204, 400, 401, 403, 404, 503))
async def delete(request: Request, app: AppDep, caller: CallerDep, name: ServiceName, workers: str = "") -> Response:
    """The service with its jobs, logs and the buckets it brought. The workers of its federation go too, unless
    `workers=keep`; those out of reach now are removed later."""
    authorization = request.headers.get("authorization", "")
    workers_too = workers.strip().lower() != "keep"
    await creation.delete(app.room, caller, name, authorization, workers_too=workers_too)
    return Response(status_code=204)


@router.get("/system/services/{name}/deployment", responses=result(200, DeploymentShown) | answers(400, 401, 403, 404))
async def deployment(app: AppDep, caller: CallerDep, name: ServiceName) -> Response:
    """Whether an exposed or synchronous service is up, and why not."""
    record = reading.get(app.room, caller, name)
    return JsonAnswer(render.deployment(app.deployment_of(record), record.service))


@router.get(
    "/system/services/{name}/deployment/logs", responses=result(200, DeploymentLog) | answers(400, 401, 403, 404)
)
async def deployment_logs(
    app: AppDep,
    caller: CallerDep,
    name: ServiceName,
    timestamps: Timestamps = "",
    tailLines: Tail = "",  # noqa: N803
) -> Response:
    """The last lines an exposed service printed."""
    record = reading.get(app.room, caller, name)
    lines, timed = tail(tailLines), flag("timestamps", timestamps)
    if not record.service.exposed:
        text = "this service has no long-lived process; see the logs of its jobs"
        return JsonAnswer({"service_name": name, "available": False, "message": text, "entries": []})
    entries = [
        {"timestamp": clock.rfc3339_nanos(line.at), "message": line.text} if timed else {"message": line.text}
        for line in app.room.exposed_host.log(name, lines)
    ]
    return JsonAnswer({"service_name": name, "available": True, "entries": entries})


@router.post("/system/services/{name}/start", responses=_DEPLOYMENT)
async def start(app: AppDep, caller: CallerDep, name: ServiceName) -> Response:
    """An exposed service that was stopped runs again."""
    record = await creation.set_running(app.room, caller, name, running=True)
    return JsonAnswer(render.deployment(app.deployment_of(record), record.service))


@router.post("/system/services/{name}/stop", responses=_DEPLOYMENT)
async def stop(app: AppDep, caller: CallerDep, name: ServiceName) -> Response:
    """An exposed service stops, and stays so until it is started."""
    record = await creation.set_running(app.room, caller, name, running=False)
    return JsonAnswer(render.deployment(app.deployment_of(record), record.service))


@router.post("/system/services/{name}/restart", responses=_DEPLOYMENT)
async def restart(app: AppDep, caller: CallerDep, name: ServiceName) -> Response:
    """The processes of an exposed service start anew."""
    record = reading.owned(app.room, caller, name)
    if not record.service.exposed:
        raise NotExposed(f"service {name} is not exposed", hint="only services with expose.api_port restart")
    if record.stopped:
        record = await creation.set_running(app.room, caller, name, running=True)
    else:
        await app.room.exposed_host.restart(name)
    return JsonAnswer(render.deployment(app.deployment_of(record), record.service))


@router.get(
    "/system/services/{name}/auth",
    responses=answers(200, 400, 401, 403, 404, body="empty"),
    openapi_extra=callable_by(SERVICE, ADMIN, USER),
)
async def authorise(request: Request, app: AppDep, name: ServiceName) -> Response:
    """For a proxy in front of an exposed service: may this visitor in? Leaves a cookie for the next quarter of an hour,
    good for this service and visitor as long as the visitor may in. It is not the service's token."""
    names.service(name)
    record = app.room.records.get(name)
    answer = Response(status_code=200, headers={"Cache-Control": "no-store"})
    if record is not None and record.phase == "ready" and visitors.caller_by_cookie(app, record.service, request):
        return answer  # nobody's visit prolongs itself
    token = _visitor_token(request)
    if looks_like_service_token(token):
        expected = record.service.token if record and record.phase == "ready" else ""
        caller = service_caller(token, service=name, owner=record.service.owner if record else "", expected=expected)
        assert record is not None
    else:
        caller = await app.sign_in.caller(authorization_of(request), address_of(request))
        record = reading.get(app.room, caller, name)
    log_caller(caller)
    answer.set_cookie(
        cookie_name(name),
        app.visits.issue(caller, service=name, token=record.service.token),
        max_age=VISIT_SECONDS,
        path=base_of(name),
        httponly=True,
        samesite="lax",
        secure=_is_https(request),
    )
    return answer


def _visitor_token(request: Request) -> str:
    """A service token may come as bearer, in the query, or in the forwarded address's query."""
    scheme, _, given = authorization_of(request).partition(" ")
    if scheme.lower() == "bearer":
        return given.strip()
    if token := request.query_params.get("token"):
        return token
    forwarded = parse_qs(urlsplit(request.headers.get("x-forwarded-uri", "")).query).get("token")
    if forwarded:
        return forwarded[0]
    if scheme:
        return ""
    raise Unauthenticated("no token was given", hint="send the service token as bearer, ?token= or cookie")


def _is_https(request: Request) -> bool:
    """Whether the visitor came over TLS, which a proxy in front ends. Who lies hides the cookie from themselves."""
    return "https" in (request.url.scheme, request.headers.get("x-forwarded-proto", "").strip().lower())


def _wants_deployment(include: str) -> bool:
    return "deployment" in {part.strip().lower() for part in include.split(",")}
