"""What every route needs: the application it belongs to and who is asking."""

from typing import Annotated, cast

import structlog
from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from hansa.bootstrap import App
from hansa.entrypoints.http import in_flight
from hansa.entrypoints.http.clients import address_of
from hansa.entrypoints.http.render import ServiceViews
from hansa.identity import Caller
from hansa.kernel import plain_text
from hansa.kernel.errors import Unauthenticated

_LONGEST_SECRET = 256
_LONGEST_NAME = 200

# All of them `async`: FastAPI sends plain functions to a thread, which costs more than most routes do.


async def app_of(request: Request) -> App:
    return cast(App, request.app.state.hansa)


def authorization_of(request: HTTPConnection) -> str:
    """The one Authorization header: with two, a proxy may have looked at the other one."""
    given = request.headers.getlist("authorization")
    if len(given) > 1:
        raise Unauthenticated("the request has more than one Authorization header", hint="send one")
    return given[0] if given else ""


def secret_of(request: HTTPConnection, scheme: str) -> str:
    """What managers show each other instead of a person's credentials."""
    shown, _, secret = authorization_of(request).partition(" ")
    if shown.lower() != scheme or not secret or len(secret) > _LONGEST_SECRET:
        raise Unauthenticated(f"this route asks for Authorization: {scheme} …", hint="only managers use it")
    return secret


def log_caller(caller: Caller) -> Caller:
    """From here on, what is logged for this request names who asked; of a service's token the service, since everybody
    may have it."""
    log_as(f"service {caller.service}" if caller.kind == "service" else caller.uid)
    return caller


def log_as(who: str) -> None:
    structlog.contextvars.bind_contextvars(caller=plain_text.plain(who, _LONGEST_NAME).replace("\n", " "))


async def caller_of(request: Request) -> Caller:
    """The admin (Basic) or a user (OIDC bearer) on `/system` and `/v1` routes; 401 otherwise."""
    app = cast(App, request.app.state.hansa)
    caller = log_caller(await app.sign_in.caller(authorization_of(request), address_of(request)))
    in_flight.claim_of(request.scope).sender = caller.uid
    return caller


async def views_of(request: Request) -> ServiceViews:
    return cast(ServiceViews, request.app.state.views)


ViewsDep = Annotated[ServiceViews, Depends(views_of)]
AppDep = Annotated[App, Depends(app_of)]
CallerDep = Annotated[Caller, Depends(caller_of)]
