"""`/v1/configs`: what managers are told to do otherwise than their own files say, how it spreads, and who has what."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from hansa.entrypoints.http.context import CallerDep
from hansa.entrypoints.http.hub.context import HubDep
from hansa.entrypoints.http.hub.queries import ClusterId, StrictQuery
from hansa.entrypoints.http.openapi import answers, native_body, result
from hansa.entrypoints.http.wire import JsonAnswer, decode_native, read_body
from hansa.federation import configuration, live
from hansa.messages.configuration import (
    Diff,
    Document,
    Documents,
    DocumentState,
    Effective,
    NewDocument,
    Overview,
    RollBack,
    Rollout,
    Stages,
    Versions,
)

changing, viewing = configuration.changing, configuration.viewing
router = APIRouter(prefix="/v1", tags=["configuration"], default_response_class=Response)
_LARGEST = 256 * 1024
_NAME = {"pattern": "^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"}
_FEDERATION = "federation"  # the document of that name, for everybody
Name = Annotated[str, Path(description="The document's name", json_schema_extra=_NAME)]
Number = Annotated[int, Path(description="One of its versions", ge=1, le=2**31)]
_READ = answers(400, 401, 404, errors="problem")
_WRITE = answers(400, 401, 403, 404, 409, 413, errors="problem")
_BODY = native_body(
    NewDocument,
    {"settings": {"jobs": {"run_limit": 120}}, "scope": {"selector": "region=eu"}, "comment": "shorter runs"},
    {"settings": live.schema()},
)


class Removal(StrictQuery):
    at_once: bool = Field(False, description="Everywhere at once; else in stages, as a new version")


class Between(StrictQuery):
    before: int | None = Field(None, alias="from", ge=0, le=2**31, description="0 is nothing; else the one before `to`")
    after: int | None = Field(None, alias="to", ge=0, le=2**31, description="The newest if left out")


@router.get("/configs", responses=result(200, Documents) | answers(401, errors="problem"))
async def documents(hub: HubDep, caller: CallerDep) -> Response:
    """All documents: their newest version, how far it is, and how many clusters are where."""
    return JsonAnswer(viewing.documents(hub))


@router.get("/configs/{name}", responses=result(200, DocumentState) | _READ)
async def show(hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """The newest version, its rollout, and which version each cluster has."""
    return JsonAnswer(viewing.state(hub, name))


@router.put("/configs/{name}", responses=result(200, DocumentState) | _WRITE, openapi_extra=_BODY)
async def put(request: Request, hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """A new version, which begins to spread. The same as the newest again changes nothing."""
    new = decode_native(await read_body(request, _LARGEST, caller.uid), NewDocument)
    return JsonAnswer(viewing.after(hub, await changing.put(hub, caller, name, new)))


@router.delete("/configs/{name}", responses=result(200, DocumentState) | _WRITE)
async def remove(hub: HubDep, caller: CallerDep, name: Name, asked: Annotated[Removal, Query()]) -> Response:
    """Takes it away: a new version that says nothing, which spreads as others do. Its history stays."""
    stages = changing.AT_ONCE if asked.at_once else Stages()
    return JsonAnswer(viewing.after(hub, await changing.remove(hub, caller, name, stages)))


@router.get("/configs/{name}/versions", responses=result(200, Versions) | _READ)
async def versions(hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """Everything it ever said, newest first; also of one that was removed."""
    return JsonAnswer(viewing.versions(hub, name))


@router.get("/configs/{name}/versions/{number}", responses=result(200, Document) | _READ)
async def version(hub: HubDep, caller: CallerDep, name: Name, number: Number) -> Response:
    """What it said in one version."""
    return JsonAnswer(viewing.version(hub, name, number))


@router.get("/configs/{name}/diff", responses=result(200, Diff) | _READ)
async def diff(hub: HubDep, caller: CallerDep, name: Name, asked: Annotated[Between, Query()]) -> Response:
    """What changed from one version to another."""
    return JsonAnswer(viewing.diff(hub, name, asked.before, asked.after))


@router.get("/configs/{name}/rollout", responses=result(200, Rollout) | _READ)
async def rollout(hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """How its newest version spreads: the stage, why it stands, and where each cluster is."""
    return JsonAnswer(viewing.rollout(hub, name))


@router.post("/configs/{name}/rollout/pause", responses=result(200, Rollout) | _WRITE)
async def pause(hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """Nobody else gets the new version until it is resumed."""
    await changing.pause(hub, caller, name)
    return JsonAnswer(viewing.rollout(hub, name))


@router.post("/configs/{name}/rollout/resume", responses=result(200, Rollout) | _WRITE)
async def resume(hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """Goes on with one that was paused or has stopped; clusters that failed try once more."""
    await changing.resume(hub, caller, name)
    return JsonAnswer(viewing.rollout(hub, name))


@router.post("/configs/{name}/rollout/stop", responses=result(200, Rollout) | _WRITE)
async def stop(hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """Ends it where it is: every cluster keeps the version it has."""
    await changing.stop(hub, caller, name)
    return JsonAnswer(viewing.rollout(hub, name))


@router.post(
    "/configs/{name}/roll-back",
    responses=result(200, DocumentState) | _WRITE,
    openapi_extra=native_body(RollBack, {"version": 1}),
)
async def roll_back(request: Request, hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """Back to what it said in an older version: a new version, told to all at once unless stages are given."""
    asked = decode_native(await read_body(request, _LARGEST, caller.uid), RollBack)
    return JsonAnswer(viewing.after(hub, await changing.roll_back(hub, caller, name, asked)))


@router.get("/clusters/{cluster}/config", responses=result(200, Effective) | _READ)
async def effective(hub: HubDep, caller: CallerDep, cluster: ClusterId) -> Response:
    """What one cluster should do, put together of all documents: where each value comes from, and whose lost."""
    return JsonAnswer(configuration.merging.effective(hub, cluster))


@router.get("/federation/config", responses=result(200, Overview) | answers(401, errors="problem"))
async def overview(hub: HubDep, caller: CallerDep) -> Response:
    """All documents, every cluster that does not have what it should have and why, and what can be set."""
    return JsonAnswer(viewing.overview(hub))


@router.put("/federation/config", responses=result(200, DocumentState) | _WRITE, openapi_extra=_BODY)
async def put_federation(request: Request, hub: HubDep, caller: CallerDep) -> Response:
    """The document `federation`; the same as `/v1/configs/federation`."""
    new = decode_native(await read_body(request, _LARGEST, caller.uid), NewDocument)
    return JsonAnswer(viewing.after(hub, await changing.put(hub, caller, _FEDERATION, new)))
