"""`/v1/cluster-tokens`, `/v1/authority`, `/v1/clusters/{id}/approve`: whom the federation lets in and trusts."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from hansa.entrypoints.http.context import CallerDep
from hansa.entrypoints.http.hub.clusters import view
from hansa.entrypoints.http.hub.context import HubDep
from hansa.entrypoints.http.openapi import answers, native_body, result
from hansa.entrypoints.http.wire import JsonAnswer, decode_native, read_body
from hansa.federation import authorities, joining, tokens
from hansa.messages.clusters import Cluster, NewToken, Token
from hansa.messages.trust import AuthorityState

router = APIRouter(prefix="/v1", tags=["trust"], default_response_class=Response)
_LARGEST = 16 * 1024
_NO_STORE = {"Cache-Control": "no-store"}  # what holds a secret is kept by nobody on the way


@router.post(
    "/cluster-tokens",
    status_code=201,
    responses=result(201, Token) | answers(400, 401, 403, 413, errors="problem"),
    openapi_extra=native_body(NewToken, {"cluster": "lubeck", "approve": True, "minutes": 60}),
)
async def create_token(request: Request, hub: HubDep, caller: CallerDep) -> Response:
    """A token to join with. It is shown in this answer only, and good for one cluster."""
    asked = decode_native(await read_body(request, _LARGEST, caller.uid), NewToken)
    return JsonAnswer(await tokens.create(hub, caller, asked), status_code=201, headers=_NO_STORE)


@router.get("/cluster-tokens", responses=result(200, list[Token]) | answers(401, 403, errors="problem"))
async def list_tokens(hub: HubDep, caller: CallerDep) -> Response:
    """All tokens that were made lately, and who used them."""
    return JsonAnswer(await tokens.listed(hub, caller))


@router.delete("/cluster-tokens/{token}", status_code=204, responses=answers(204, 401, 403, 404, errors="problem"))
async def revoke_token(hub: HubDep, caller: CallerDep, token: str) -> Response:
    """Nobody can join with it any more."""
    await tokens.revoke(hub, caller, token)
    return Response(status_code=204)


@router.post(
    "/clusters/{cluster}/approve", responses=result(200, Cluster) | answers(401, 403, 404, 409, errors="problem")
)
async def approve(hub: HubDep, caller: CallerDep, cluster: str) -> Response:
    """Lets in a cluster that joined with a token without approval."""
    return JsonAnswer(view(await joining.approve(hub, caller, cluster)))


@router.get("/authority", responses=result(200, AuthorityState) | answers(401, errors="problem"))
async def show(hub: HubDep, caller: CallerDep) -> Response:
    """The roots of trust, and how many clusters hold certificates of each."""
    return JsonAnswer(authorities.view(hub))


@router.post(
    "/authority/rotate",
    status_code=202,
    responses=result(202, AuthorityState) | answers(401, 403, 409, errors="problem"),
)
async def rotate(hub: HubDep, caller: CallerDep) -> Response:
    """Introduces a new root; it follows the active one as soon as all know it."""
    await authorities.rotate(hub, caller)
    return JsonAnswer(authorities.view(hub), status_code=202)


@router.delete(
    "/authority/{root}", responses=result(200, AuthorityState) | answers(401, 403, 404, 409, errors="problem")
)
async def drop(hub: HubDep, caller: CallerDep, root: str) -> Response:
    """Stops trusting a retiring root at once: clusters that still have certificates of it need new tokens."""
    await authorities.drop(hub, caller, root)
    return JsonAnswer(authorities.view(hub))
