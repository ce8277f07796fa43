"""`/v1/policies`: the rules of the federation, typed, in versions, and what a new one would change."""

from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from hansa.entrypoints.http.context import CallerDep
from hansa.entrypoints.http.hub.context import HubDep
from hansa.entrypoints.http.openapi import answers, native_body, result, schema_of
from hansa.entrypoints.http.wire import JsonAnswer, decode_native, read_body
from hansa.federation import policies
from hansa.messages.policies import DryRun, NewPolicy, Policies, Policy, PolicyVersions

router = APIRouter(prefix="/v1/policies", tags=["policies"], default_response_class=Response)
_LARGEST = 256 * 1024
_NAME = {"pattern": "^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"}
Name = Annotated[str, Path(description="The policy's name", json_schema_extra=_NAME)]
_READ = answers(400, 401, 404, errors="problem")
_WRITE = answers(400, 401, 403, 404, 409, 413, errors="problem")
_BODY = native_body(
    NewPolicy,
    {"kind": "placement", "rules": {"allowed": "region in (eu, us)", "spread": "zone"}},
    {"rules": {"type": "object", "anyOf": [schema_of(kind) for kind in policies.RULES.values()]}},
)


@router.get("", responses=result(200, Policies) | answers(401, errors="problem"))
async def everything(hub: HubDep, caller: CallerDep) -> Response:
    """All policies in force."""
    return JsonAnswer(policies.changing.everything(hub))


@router.get("/{name}", responses=result(200, Policy) | _READ)
async def show(hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """One policy, its newest version."""
    return JsonAnswer(policies.changing.get(hub, name))


@router.put("/{name}", responses=result(200, Policy) | _WRITE, openapi_extra=_BODY)
async def put(request: Request, hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """A new version, in force at once. The same as the newest again changes nothing."""
    new = decode_native(await read_body(request, _LARGEST, caller.uid), NewPolicy)
    return JsonAnswer(policies.changing.view(await policies.changing.put(hub, caller, name, new)))


@router.delete("/{name}", responses=result(200, Policy) | _WRITE)
async def remove(hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """It is in force no longer; its history stays."""
    return JsonAnswer(policies.changing.view(await policies.changing.remove(hub, caller, name)))


@router.get("/{name}/versions", responses=result(200, PolicyVersions) | _READ)
async def versions(hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """Everything it ever said, newest first; also of one that was removed."""
    return JsonAnswer(policies.changing.versions(hub, name))


@router.post(
    "/{name}/dry-run",
    responses=result(200, DryRun) | answers(400, 401, 409, 413, errors="problem"),
    openapi_extra=_BODY,
)
async def dry_run(request: Request, hub: HubDep, caller: CallerDep, name: Name) -> Response:
    """What would be different with this version, at this moment; nothing is changed."""
    new = decode_native(await read_body(request, _LARGEST, caller.uid), NewPolicy)
    return JsonAnswer(policies.changing.dry_run(hub, name, new))
