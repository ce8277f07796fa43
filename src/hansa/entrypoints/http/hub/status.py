"""`/v1/federation/status`, `/v1/links`, `/v1/changes`: how the federation is, who reaches whom, what happened."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query
from starlette.responses import Response

from hansa.entrypoints.http.context import CallerDep
from hansa.entrypoints.http.hub.context import HubDep
from hansa.entrypoints.http.hub.queries import ChangesPage, OneCluster
from hansa.entrypoints.http.openapi import answers, result
from hansa.entrypoints.http.wire import JsonAnswer
from hansa.federation import acting, health
from hansa.federation import links as between
from hansa.messages.inventory import Changes, FederationStatus, Links

router = APIRouter(prefix="/v1", tags=["status"], default_response_class=Response)


@router.get("/federation/status", responses=result(200, FederationStatus) | answers(401, errors="problem"))
async def status(hub: HubDep, caller: CallerDep) -> Response:
    """How the federation is: a score with what every missing point is for, what is degraded, what changed last, and
    which hub does which work."""

    async def made() -> bytes:
        return msgspec.json.encode(health.status(hub))

    return JsonAnswer(await hub.answer_about_all("status", made))


@router.get("/links", responses=result(200, Links) | answers(400, 401, 404, errors="problem"))
async def links(hub: HubDep, caller: CallerDep, asked: Annotated[OneCluster, Query()]) -> Response:
    """How clusters reach each other, as their managers measured it, and where two disagree."""
    if asked.cluster:
        acting.get(hub, asked.cluster)
    found = hub.links.all(asked.cluster)
    return JsonAnswer(Links(age=round(hub.age, 3), links=tuple(found), disagreements=between.disagreements(found)))


@router.get("/changes", responses=result(200, Changes) | answers(400, 401, errors="problem"))
async def changes(hub: HubDep, caller: CallerDep, asked: Annotated[ChangesPage, Query()]) -> Response:
    """What happened, newest first."""
    found = await hub.clusters.changes(before=asked.before, cluster=asked.cluster, most=asked.most)
    return JsonAnswer(Changes(changes=tuple(found)))
