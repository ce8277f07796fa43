"""`/system/federation/{service}` and its older name `/system/replicas/{service}`: the members of a federation."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from hansa.entrypoints.http.context import AppDep, CallerDep
from hansa.entrypoints.http.openapi import answers, body_of, result
from hansa.entrypoints.http.parameters import ServiceName
from hansa.entrypoints.http.shapes import Members
from hansa.entrypoints.http.wire import JsonAnswer, decode, read_body
from hansa.identity import Caller
from hansa.services import Record, membership, reading, wire_view

router = APIRouter(tags=["federation"], default_response_class=Response)
_EXAMPLE = {"members": [{"type": "oscar", "cluster_id": "visby", "service_name": "hello", "priority": 0}]}


def _shown(record: Record, caller: Caller) -> dict[str, Any]:
    federation = record.service.federation
    full = reading.has_full_view(caller, record)
    return {
        "topology": federation.topology if federation else "none",
        # null, never []: clients rely on it
        "members": (wire_view.members(federation, full=full) or None) if federation else None,
    }


async def _change(request: Request, app: AppDep, caller: CallerDep, service: str, verb: str) -> Response:
    change = decode(await read_body(request, app.settings.http.body_limit), membership.MembersRequest)
    return JsonAnswer(_shown(await membership.change(app.room, caller, service, change, verb), caller))


for _base in ("/system/federation/{service}", "/system/replicas/{service}"):

    @router.get(_base, responses=result(200, Members) | answers(400, 401, 403, 404))
    async def read(app: AppDep, caller: CallerDep, service: ServiceName) -> Response:
        """Topology and members."""
        return JsonAnswer(_shown(reading.get(app.room, caller, service), caller))

    @router.post(
        _base,
        responses=result(200, Members) | answers(400, 401, 403, 404, 409),
        openapi_extra=body_of(membership.MembersRequest, _EXAMPLE),
    )
    async def add(request: Request, app: AppDep, caller: CallerDep, service: ServiceName) -> Response:
        """Adds members."""
        return await _change(request, app, caller, service, "add")

    @router.put(
        _base,
        responses=result(200, Members) | answers(400, 401, 403, 404, 409),
        openapi_extra=body_of(membership.MembersRequest, _EXAMPLE),
    )
    async def replace(request: Request, app: AppDep, caller: CallerDep, service: ServiceName) -> Response:
        """Replaces members by their new form."""
        return await _change(request, app, caller, service, "update")

    @router.delete(
        _base,
        responses=result(200, Members) | answers(400, 401, 403, 404, 409),
        openapi_extra=body_of(membership.MembersRequest, _EXAMPLE),
    )
    async def remove(request: Request, app: AppDep, caller: CallerDep, service: ServiceName) -> Response:
        """Removes members."""
        return await _change(request, app, caller, service, "remove")
