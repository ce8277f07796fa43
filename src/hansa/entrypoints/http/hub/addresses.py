"""`/v1/clusters/{id}/address`: where others are told that a cluster is, and what it asks for instead."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from hansa.entrypoints.http.context import CallerDep
from hansa.entrypoints.http.hub.context import HubDep
from hansa.entrypoints.http.hub.queries import ClusterId
from hansa.entrypoints.http.openapi import answers, native_body, result
from hansa.entrypoints.http.wire import JsonAnswer, decode_native, read_body
from hansa.federation import addressing, inventory
from hansa.messages.clusters import Address, AskedAddress, Cluster

router = APIRouter(prefix="/v1/clusters/{cluster}/address", tags=["clusters"], default_response_class=Response)
_LARGEST = 16 * 1024
_DONE = result(200, Cluster) | answers(400, 401, 403, 404, 409, 413, errors="problem")
_ASKED = native_body(AskedAddress, {"endpoint": "https://lubeck.example.org"})


@router.put(
    "",
    responses=_DONE,
    openapi_extra=native_body(Address, {"endpoint": "https://lubeck.example.org", "verify": True}),
)
async def put(request: Request, hub: HubDep, caller: CallerDep, cluster: ClusterId) -> Response:
    """Says where a cluster is; all others are told."""
    said = decode_native(await read_body(request, _LARGEST, caller.uid), Address)
    return JsonAnswer(inventory.cluster_of(await addressing.put(hub, caller, cluster, said)))


@router.post("/approve", responses=_DONE, openapi_extra=_ASKED)
async def approve(request: Request, hub: HubDep, caller: CallerDep, cluster: ClusterId) -> Response:
    """Grants a cluster the address it asks for (`asks_for`), if it still is the one that is named here."""
    asked = decode_native(await read_body(request, _LARGEST, caller.uid), AskedAddress)
    return JsonAnswer(inventory.cluster_of(await addressing.approve(hub, caller, cluster, asked.endpoint)))


@router.post("/refuse", responses=_DONE, openapi_extra=_ASKED)
async def refuse(request: Request, hub: HubDep, caller: CallerDep, cluster: ClusterId) -> Response:
    """The cluster stays where it is; that it asks for this address is not told again."""
    asked = decode_native(await read_body(request, _LARGEST, caller.uid), AskedAddress)
    return JsonAnswer(inventory.cluster_of(await addressing.refuse(hub, caller, cluster, asked.endpoint)))
