"""`/v1/services/{name}/credentials`: how a service stands with other clusters; no answer here shows a refresh token.

`…/access-token` is for the managers of one federation: a member shows the group key and gets a short-lived token.
"""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hansa.bootstrap import App
from hansa.entrypoints.http import render
from hansa.entrypoints.http.context import AppDep, CallerDep, secret_of
from hansa.entrypoints.http.document import GROUP_KEY, callable_by
from hansa.entrypoints.http.openapi import answers, result
from hansa.entrypoints.http.parameters import ServiceName
from hansa.entrypoints.http.shapes import Credentials
from hansa.entrypoints.http.wire import JsonAnswer
from hansa.kernel import clock, names
from hansa.services import credentials, reading

router = APIRouter(prefix="/v1/services/{name}", tags=["credentials"], default_response_class=Response)
_NO_STORE = {"Cache-Control": "no-store"}  # RFC 6749 5.1: what holds a token is kept by nobody on the way


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    access_token: str
    expires_at: str  # RFC 3339
    expires_in: float  # seconds: clocks of two clusters may differ


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    at: str
    actor: str
    action: str
    detail: str


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    service: str
    entries: list[Entry]  # newest first


@router.post(
    "/access-token",
    responses=result(200, AccessToken) | answers(400, 401, 409, errors="problem"),
    openapi_extra=callable_by(GROUP_KEY),
)
async def access_token(request: Request, app: AppDep, name: ServiceName) -> Response:
    """For members of the service's federation: a fresh access token of its owner."""
    names.service(name)
    asked_from = request.client.host if request.client else ""
    token, expires = await _keyring(app).token_for_member(name, secret_of(request, "groupkey"), asked_from=asked_from)
    shown = AccessToken(
        access_token=token,
        expires_at=clock.rfc3339(expires),
        expires_in=round(max(0.0, expires - app.clock.now()), 3),
    )
    return JsonAnswer(shown, headers=_NO_STORE)


@router.get("/credentials", responses=result(200, Credentials) | answers(400, 401, 403, 404, errors="problem"))
async def show(app: AppDep, caller: CallerDep, name: ServiceName) -> Response:
    """Whether the service's refresh token works, since when not, and what to do. For its owner and the admin."""
    reading.owned(app.room, caller, name)
    return JsonAnswer(render.credentials(name, await _keyring(app).standing(name)))


@router.post(
    "/credentials/rotate", responses=result(200, Credentials) | answers(400, 401, 403, 404, 409, errors="problem")
)
async def rotate(app: AppDep, caller: CallerDep, name: ServiceName) -> Response:
    """Exchanges the refresh token now; `obtained` is new if its issuer replaced it."""
    reading.owned(app.room, caller, name)
    return JsonAnswer(render.credentials(name, await _keyring(app).rotate(name, actor=caller.uid)))


@router.delete("/credentials", responses=result(200, Credentials) | answers(400, 401, 403, 404, 409, errors="problem"))
async def revoke(app: AppDep, caller: CallerDep, name: ServiceName) -> Response:
    """Revokes the refresh token at its issuer and removes it here, also if the issuer cannot revoke it."""
    reading.owned(app.room, caller, name)
    return JsonAnswer(render.credentials(name, await _keyring(app).revoke(name, actor=caller.uid)))


@router.get("/audit", responses=result(200, Audit) | answers(400, 401, 403, 404, errors="problem"))
async def audit(
    app: AppDep, caller: CallerDep, name: ServiceName, most: Annotated[int, Query(ge=1, le=1000)] = 100
) -> Response:
    """Who used the service's refresh token, newest first. For its owner and the admin."""
    reading.owned(app.room, caller, name)
    entries = await _keyring(app).history(name, most=most)
    listed = [
        Entry(at=clock.rfc3339_nanos(one.at), actor=one.actor, action=one.action, detail=one.detail) for one in entries
    ]
    return JsonAnswer(Audit(service=name, entries=listed))


def _keyring(app: App) -> credentials.Keyring:
    keyring = app.room.keyring
    assert isinstance(keyring, credentials.Keyring)
    return keyring
