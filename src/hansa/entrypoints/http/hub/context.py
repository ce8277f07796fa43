"""What every route of the hub needs: the hub it belongs to, and its answers."""

from typing import Annotated, cast

from fastapi import Depends, Request

from hansa.bootstrap import HubApp
from hansa.federation import Hub


async def hub_app_of(request: Request) -> HubApp:
    return cast(HubApp, request.app.state.hansa)


async def hub_of(request: Request) -> Hub:
    return cast(HubApp, request.app.state.hansa).hub


HubAppDep = Annotated[HubApp, Depends(hub_app_of)]
HubDep = Annotated[Hub, Depends(hub_of)]
