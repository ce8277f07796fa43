"""`/v1/clusters/{id}`: one cluster of the federation, and what can be done with it."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from hansa.entrypoints.http.context import CallerDep
from hansa.entrypoints.http.hub.context import HubAppDep, HubDep
from hansa.entrypoints.http.hub.queries import ClusterId
from hansa.entrypoints.http.openapi import answers, native_body, result
from hansa.entrypoints.http.wire import JsonAnswer, decode_native, read_body
from hansa.federation import acting, inventory, outsiders
from hansa.messages.clusters import Cluster, FactsChange, NewOscarCluster, StatusChange
from hansa.messages.inventory import ClusterStatus

router = APIRouter(prefix="/v1/clusters", tags=["clusters"], default_response_class=Response)
_LARGEST = 64 * 1024
view = inventory.cluster_of
_DONE = result(200, Cluster) | answers(400, 401, 403, 404, 409, errors="problem")
_TOO_LARGE = answers(413, errors="problem")


@router.post(
    "",
    status_code=201,
    responses=result(201, Cluster) | answers(400, 401, 403, 409, 413, 502, errors="problem"),
    openapi_extra=native_body(
        NewOscarCluster,
        {"id": "valencia", "endpoint": "https://oscar.example.org", "user": "oscar", "password": "secret"},
    ),
)
async def register(request: Request, app: HubAppDep, caller: CallerDep) -> Response:
    """Adds an OSCAR cluster that has no manager of ours: the hub itself asks it from now on."""
    asked = decode_native(await read_body(request, _LARGEST, caller.uid), NewOscarCluster)
    return JsonAnswer(view(await outsiders.register(app.hub, app.outsiders, caller, asked)), 201)


@router.get("/{cluster}", responses=result(200, Cluster) | answers(401, 404, errors="problem"))
async def show(hub: HubDep, caller: CallerDep, cluster: str) -> Response:
    """One cluster: who it is, how it is, and why."""
    return JsonAnswer(view(acting.get(hub, cluster)))


@router.patch(
    "/{cluster}",
    responses=_DONE | _TOO_LARGE,
    openapi_extra=native_body(FactsChange, {"region": "eu-north", "metadata": {"tier": "a"}}),
)
async def describe(request: Request, hub: HubDep, caller: CallerDep, cluster: str) -> Response:
    """What the admin says of a cluster; it wins over what the cluster says itself."""
    said = decode_native(await read_body(request, _LARGEST, caller.uid), FactsChange)
    return JsonAnswer(view(await acting.describe(hub, caller, cluster, said)))


@router.delete("/{cluster}", status_code=204, responses=answers(204, 400, 401, 403, 404, 409, errors="problem"))
async def remove(hub: HubDep, caller: CallerDep, cluster: str, force: bool = False) -> Response:
    """Removes a cluster that left or is lost; `force` also one that is still there."""
    await acting.remove(hub, caller, cluster, force=force)
    return Response(status_code=204)


@router.get("/{cluster}/status", responses=result(200, ClusterStatus) | answers(400, 401, 404, errors="problem"))
async def status(hub: HubDep, caller: CallerDep, cluster: ClusterId) -> Response:
    """How one cluster is, what is wanted of it, and everything it reported, also what this version does not know."""
    return JsonAnswer(inventory.status_of(acting.get(hub, cluster)))


@router.put(
    "/{cluster}/status",
    responses=result(200, ClusterStatus) | answers(400, 401, 403, 404, 409, 413, errors="problem"),
    openapi_extra=native_body(StatusChange, {"wanted": "drain"}),
)
async def change_status(request: Request, hub: HubDep, caller: CallerDep, cluster: ClusterId) -> Response:
    """What is wanted of a cluster: to be a member, to drain, to leave; to take nothing new. The rest stays as it is."""
    asked = decode_native(await read_body(request, _LARGEST, caller.uid), StatusChange)
    return JsonAnswer(inventory.status_of(await acting.change_status(hub, caller, cluster, asked)))


@router.post("/{cluster}/cordon", responses=_DONE)
async def cordon(hub: HubDep, caller: CallerDep, cluster: str) -> Response:
    """Nothing new is placed there."""
    return JsonAnswer(view(await acting.cordon(hub, caller, cluster, on=True)))


@router.post("/{cluster}/uncordon", responses=_DONE)
async def uncordon(hub: HubDep, caller: CallerDep, cluster: str) -> Response:
    """It takes work again; a drain ends."""
    return JsonAnswer(view(await acting.cordon(hub, caller, cluster, on=False)))


@router.post("/{cluster}/drain", responses=_DONE)
async def drain(hub: HubDep, caller: CallerDep, cluster: str) -> Response:
    """Its work is finished or moved; its state tells how far it is."""
    return JsonAnswer(view(await acting.drain(hub, caller, cluster)))


@router.post("/{cluster}/leave", responses=_DONE)
async def leave(hub: HubDep, caller: CallerDep, cluster: str) -> Response:
    """It drains and then leaves by itself."""
    return JsonAnswer(view(await acting.let_go(hub, caller, cluster)))
