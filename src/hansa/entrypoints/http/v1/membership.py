"""`/v1/membership`: does this cluster belong to a federation, how does it stand with its hub; joining and leaving."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from hansa.entrypoints.http.context import AppDep, CallerDep
from hansa.entrypoints.http.openapi import answers, native_body, result
from hansa.entrypoints.http.parameters import Flag, flag
from hansa.entrypoints.http.wire import JsonAnswer, decode_native, read_body
from hansa.identity import access
from hansa.messages.membership import JoinHub, Membership

router = APIRouter(prefix="/v1/membership", tags=["federation"], default_response_class=Response)
_LARGEST = 64 * 1024
_EXAMPLE = {"hub": "https://hub.example.org:7443", "token": "hansa1.…"}


@router.get("", responses=result(200, Membership) | answers(401, errors="problem"))
async def show(app: AppDep, caller: CallerDep) -> Response:
    """The hub this cluster belongs to, when it last answered, what it told and what of that is in force."""
    return JsonAnswer(await app.membership.shown())


@router.post(
    "",
    responses=result(200, Membership) | answers(400, 401, 403, 409, 413, errors="problem"),
    openapi_extra=native_body(JoinHub, _EXAMPLE),
)
async def join(request: Request, app: AppDep, caller: CallerDep) -> Response:
    """Joins a federation with a token made at its hub. It may then still wait for approval there."""
    access.require_admin(caller, "join a federation")
    asked = decode_native(await read_body(request, _LARGEST, caller.uid), JoinHub)
    await app.membership.join(asked.hub, asked.token)
    return JsonAnswer(await app.membership.shown())


@router.delete(
    "",
    responses=result(200, Membership) | result(202, Membership) | answers(400, 401, 403, 409, errors="problem"),
)
async def leave(app: AppDep, caller: CallerDep, force: Flag = "") -> Response:
    """Leaves: drains first, which takes as long as its jobs do (202); with `force` at once, whatever the hub says."""
    access.require_admin(caller, "leave the federation")
    await app.membership.leave(force=flag("force", force))
    shown = await app.membership.shown()
    return JsonAnswer(shown, 202 if shown.state == "leaving" else 200)
