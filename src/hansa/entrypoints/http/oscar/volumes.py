"""`/system/volumes`: what is kept in the caller's namespace and outlives the jobs using it."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Request
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from hansa import resources
from hansa.entrypoints.http.context import AppDep, CallerDep
from hansa.entrypoints.http.openapi import answers, body_of, result
from hansa.entrypoints.http.wire import JsonAnswer, read_document
from hansa.storage import VolumeView

router = APIRouter(tags=["volumes"], default_response_class=Response)

_LARGEST_BODY = 2**16
_NAME = {"pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"}
_SIZE = {"pattern": "^[1-9][0-9]{0,5}(Ki|Mi|Gi)$"}

VolumeName = Annotated[str, Path(description="The volume's name", json_schema_extra=_NAME)]


class VolumeBody(msgspec.Struct, frozen=True, kw_only=True):
    name: Annotated[str, Meta(extra_json_schema=_NAME)]
    size: Annotated[str, Meta(extra_json_schema=_SIZE)]


class AttachmentShown(msgspec.Struct, frozen=True, kw_only=True):
    service_name: str
    mount_path: str


class StatusShown(msgspec.Struct, frozen=True, kw_only=True):
    phase: str  # ready | in_use | pending | lost
    attachment_count: int | UnsetType = UNSET
    reason: str | UnsetType = UNSET  # why it is not ready


class ManagedVolume(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    namespace: str
    size: str
    owner_user: str
    created_by_service: str | UnsetType = UNSET
    creation_mode: str  # api | service
    lifecycle_policy: str  # delete | retain
    attachments: tuple[AttachmentShown, ...] | UnsetType = UNSET
    status: StatusShown


@router.get("/system/volumes", responses=result(200, list[ManagedVolume]) | answers(401))
async def list_volumes(app: AppDep, caller: CallerDep) -> Response:
    """The volumes of the caller's namespace."""
    return JsonAnswer([_shown(view) for view in await app.volumes.listing(caller)])


@router.post(
    "/system/volumes",
    status_code=201,
    responses=result(201, ManagedVolume) | answers(400, 401, 409),
    openapi_extra=body_of(VolumeBody, {"name": "models", "size": "1Gi"}),
)
async def create_volume(request: Request, app: AppDep, caller: CallerDep) -> Response:
    """A new, empty volume within the caller's quota."""
    body = await read_document(request, VolumeBody, caller.uid, _LARGEST_BODY)
    return JsonAnswer(_shown(await app.volumes.create(caller, body.name, body.size)), 201)


@router.get("/system/volumes/{volume}", responses=result(200, ManagedVolume) | answers(400, 401, 404))
async def get_volume(app: AppDep, caller: CallerDep, volume: VolumeName) -> Response:
    """One volume and the services that use it."""
    return JsonAnswer(_shown(await app.volumes.get(caller, volume)))


@router.delete("/system/volumes/{volume}", status_code=204, responses=answers(204, 400, 401, 404))
async def delete_volume(app: AppDep, caller: CallerDep, volume: VolumeName) -> Response:
    """The volume goes with its contents, unless a service uses it."""
    await app.volumes.delete(caller, volume)
    return Response(status_code=204)


def _shown(view: VolumeView) -> ManagedVolume:
    volume = view.volume
    attachments = tuple(
        AttachmentShown(service_name=one.service_name, mount_path=one.mount_path) for one in view.attachments
    )
    return ManagedVolume(
        name=volume.name,
        namespace=volume.namespace,
        size=resources.exact_size(volume.size),
        owner_user=volume.owner,
        created_by_service=volume.created_by or UNSET,
        creation_mode="service" if volume.created_by else "api",
        lifecycle_policy=volume.policy,
        attachments=attachments or UNSET,
        status=StatusShown(
            phase=_phase(view), attachment_count=len(attachments) or UNSET, reason=view.standing.reason or UNSET
        ),
    )


def _phase(view: VolumeView) -> str:
    if view.standing.phase != "Bound":
        return view.standing.phase.lower()
    return "in_use" if view.attachments else "ready"
