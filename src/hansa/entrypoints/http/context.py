"""What every route needs: the application it belongs to and who is asking."""

from typing import Annotated, cast

from fastapi import Depends, Request

from hansa.bootstrap import App
from hansa.entrypoints.http.render import ServiceViews
from hansa.identity import Caller
from hansa.kernel.errors import Unauthenticated

# All of them `async`: FastAPI sends plain functions to a thread, which costs more than most routes do.


async def app_of(request: Request) -> App:
    return cast(App, request.app.state.hansa)


def authorization_of(request: Request) -> str:
    """The one Authorization header: with two, a proxy may have looked at the other one."""
    given = request.headers.getlist("authorization")
    if len(given) > 1:
        raise Unauthenticated("the request has more than one Authorization header", hint="send one")
    return given[0] if given else ""


async def caller_of(request: Request) -> Caller:
    """The admin (Basic) or a user (OIDC bearer) on `/system` and `/v1` routes; 401 otherwise."""
    app = cast(App, request.app.state.hansa)
    return await app.sign_in.caller(authorization_of(request))


async def views_of(request: Request) -> ServiceViews:
    return cast(ServiceViews, request.app.state.views)


ViewsDep = Annotated[ServiceViews, Depends(views_of)]
AppDep = Annotated[App, Depends(app_of)]
CallerDep = Annotated[Caller, Depends(caller_of)]
