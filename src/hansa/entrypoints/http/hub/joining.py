"""`/member/v1`: how a manager gets in, stays in and gets out. The first two need no certificate."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from hansa.entrypoints.http.clients import stranger
from hansa.entrypoints.http.hub.context import HubDep
from hansa.entrypoints.http.hub.tls import LateMemberDep, MemberDep
from hansa.entrypoints.http.wire import JsonAnswer, decode_native, read_body
from hansa.federation import joining
from hansa.messages.members import Join, Leave, Renew
from hansa.messages.trust import Roots

router = APIRouter(prefix="/member/v1", default_response_class=Response)
_LARGEST = 128 * 1024
_NO_STORE = {"Cache-Control": "no-store"}


@router.get("/roots")
async def roots(hub: HubDep) -> Response:
    """For who has a token: it knows the right root by the fingerprint in it."""
    return JsonAnswer(Roots(trust_domain=hub.trust.domain, roots=hub.trust.roots), headers=_NO_STORE)


@router.post("/join")
async def join(request: Request, hub: HubDep) -> Response:
    """A token and a signing request become a certificate."""
    said = decode_native(await read_body(request, _LARGEST, stranger(request)), Join)
    return JsonAnswer(await joining.join(hub, said), headers=_NO_STORE)


@router.post("/renew")
async def renew(request: Request, hub: HubDep, member: LateMemberDep) -> Response:
    """A new certificate for a new key."""
    said = decode_native(await read_body(request, _LARGEST, member.known.id), Renew)
    return JsonAnswer(await joining.renew(hub, member.shown, said), headers=_NO_STORE)


@router.post("/leave", status_code=204)
async def leave(request: Request, hub: HubDep, member: MemberDep) -> Response:
    """It is no member from now on."""
    body = await read_body(request, _LARGEST, member.known.id)
    said = decode_native(body, Leave) if body else Leave()
    await joining.leave(hub, member.known.id, said.run)
    return Response(status_code=204)
