"""`/system/federation/{service}` and its older name `/system/replicas/{service}`: the members of a federation."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from hansa.bootstrap import App
from hansa.entrypoints.http import render
from hansa.entrypoints.http.context import AppDep, CallerDep
from hansa.entrypoints.http.openapi import answers, body_of, result
from hansa.entrypoints.http.parameters import Flag, ServiceName, flag
from hansa.entrypoints.http.shapes import Members
from hansa.entrypoints.http.wire import JsonAnswer, read_document, warned
from hansa.identity import Caller, access
from hansa.kernel import clock
from hansa.services import membership, reading, replicas, wire_view

router = APIRouter(tags=["federation"], default_response_class=Response)
_EXAMPLE = {"members": [{"type": "oscar", "cluster_id": "visby", "service_name": "hello", "priority": 0}]}


def _shown(topology: str, members: Sequence[Any]) -> dict[str, Any]:
    return {"topology": topology, "members": list(members) or None}  # null, never []: clients rely on it


async def _change(request: Request, app: AppDep, caller: CallerDep, service: str, verb: membership.Verb) -> Response:
    """200 also when a member could not be told (`warnings` names it); `?strict=true` makes that a 502."""
    reading.owned(app.room, caller, service)  # nobody else's is read
    wanted = await read_document(request, membership.MembersRequest, caller.uid)
    authorization = request.headers.get("authorization", "")
    done = await membership.change(app.room, caller, service, wanted, verb, authorization)
    shown = _shown(done.topology, done.members)
    if done.failures:
        shown["warnings"] = [{"member": one.member, "reason": one.reason} for one in done.failures]
        if flag("strict", request.query_params.get("strict", "")):
            raise replicas.FederationFailed(render.warnings(done.failures))
    return warned(JsonAnswer(shown), done.notes)


async def _read(request: Request, app: App, caller: Caller, service: str, *, with_state: bool) -> Response:
    record = reading.get(app.room, caller, service)
    federation = record.service.federation
    full = reading.has_full_view(caller, record)
    shown = _shown(
        federation.topology if federation else "none", wire_view.members(federation, full=full) if federation else ()
    )
    if with_state and access.may_change(caller, record.service.owner):
        found = await replicas.look(app.room, record, request.headers.get("authorization", ""))
        shown["state"] = [
            {
                "member": one.key,
                "reachable": one.reachable,
                "in_sync": one.in_sync,
                "last_seen": clock.rfc3339(one.last_seen) if one.last_seen is not None else None,
                "definition": one.definition,
                "trouble": one.trouble,
                "way": one.way,
            }
            for one in found
        ]
        # last, for asking the members has just shown whether the refresh token works
        shown["credentials"] = render.credentials(service, await app.room.keyring.standing(service))
    return JsonAnswer(shown)


for _base in ("/system/federation/{service}", "/system/replicas/{service}"):

    @router.get(_base, responses=result(200, Members) | answers(400, 401, 403, 404))
    async def read(
        request: Request, app: AppDep, caller: CallerDep, service: ServiceName, state: Flag = ""
    ) -> Response:
        """Topology and members; with `state=true` also whether each is reachable and in sync, and whether the service's
        refresh token works. For its owner and the admin."""
        return await _read(request, app, caller, service, with_state=flag("state", state))

    @router.post(
        _base,
        responses=result(200, Members) | answers(400, 401, 403, 404, 409, 502),
        openapi_extra=body_of(membership.MembersRequest, _EXAMPLE),
    )
    async def add(request: Request, app: AppDep, caller: CallerDep, service: ServiceName) -> Response:
        """Adds members."""
        return await _change(request, app, caller, service, "add")

    @router.put(
        _base,
        responses=result(200, Members) | answers(400, 401, 403, 404, 409, 502),
        openapi_extra=body_of(membership.MembersRequest, _EXAMPLE),
    )
    async def replace(request: Request, app: AppDep, caller: CallerDep, service: ServiceName) -> Response:
        """Replaces members by their new form."""
        return await _change(request, app, caller, service, "update")

    @router.delete(
        _base,
        responses=result(200, Members) | answers(400, 401, 403, 404, 409, 502),
        openapi_extra=body_of(membership.MembersRequest, _EXAMPLE),
    )
    async def remove(request: Request, app: AppDep, caller: CallerDep, service: ServiceName) -> Response:
        """Removes members."""
        return await _change(request, app, caller, service, "remove")
