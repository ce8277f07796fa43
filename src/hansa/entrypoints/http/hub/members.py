"""`/member/v1`: what members report, and what they should know."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hansa.entrypoints.http.hub.context import HubAppDep
from hansa.entrypoints.http.hub.tls import MemberDep
from hansa.entrypoints.http.wire import JsonAnswer, decode_native, read_body
from hansa.federation import desired, heartbeats
from hansa.messages.members import Heartbeat

router = APIRouter(prefix="/member/v1", default_response_class=Response)
_LARGEST = 8 * 2**20
_LONGEST_WAIT = 60.0
_ENCODER = msgspec.json.Encoder()


@router.post("/heartbeat")
async def heartbeat(request: Request, app: HubAppDep, member: MemberDep) -> Response:
    """How a cluster is: answered from memory, written down with others a moment later."""
    beat = decode_native(await read_body(request, _LARGEST), Heartbeat)
    heard = heartbeats.hear(app.hub, member.known, beat, member.shown.serial)
    app.telemetry.heartbeats.inc()
    return JsonAnswer(_ENCODER.encode(heard))


@router.get("/desired")
async def what_to_know(
    app: HubAppDep,
    member: MemberDep,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    wait: Annotated[float, Query(ge=0, le=_LONGEST_WAIT)] = 0.0,
) -> Response:
    """As soon as there is anything newer than `after`; 204 if there is nothing within `wait` seconds."""
    found = await desired.newer(app.hub, member.known.id, after, wait)
    return Response(status_code=204) if found is None else JsonAnswer(_ENCODER.encode(found))
