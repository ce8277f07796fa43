"""`/system/quotas`: how much a user may have and has; the admin changes it."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Request
from msgspec import Meta
from starlette.responses import Response

from hansa.entrypoints.http.context import AppDep, CallerDep
from hansa.entrypoints.http.openapi import answers, at_least_one, body_of, result
from hansa.entrypoints.http.wire import JsonAnswer, convert, read_document, warned
from hansa.identity import access
from hansa.kernel import quantities
from hansa.kernel.errors import Forbidden
from hansa.resources import QuotaChange, QuotaReport, check_uid, exact_size

router = APIRouter(tags=["quotas"], default_response_class=Response)

_LARGEST_BODY = 2**16
_HYPHENATED = "ephemeral-storage"  # how the dashboard spells it
_Amount = Annotated[str, Meta(extra_json_schema={"pattern": "^([0-9]{1,6}(m|k|Ki|Mi|Gi)?)?$"})]
_Count = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9]{0,6}$"})]

_USER = {"pattern": "^[^/\\x00-\\x1f\\x7f-\\x9f]{1,255}$"}

UserId = Annotated[str, Path(description="The user's full OIDC subject", json_schema_extra=_USER)]


class VolumeLimits(msgspec.Struct, frozen=True, kw_only=True):
    disk: _Amount = ""
    volumes: _Count = ""
    max_disk_per_volume: _Amount = ""
    min_disk_per_volume: _Amount = ""


class BucketLimits(msgspec.Struct, frozen=True, kw_only=True):
    buckets: _Count = ""
    storage_per_bucket: _Amount = ""


class QuotaBody(msgspec.Struct, frozen=True, kw_only=True):
    cpu: _Amount = ""
    memory: _Amount = ""
    ephemeral_storage: _Amount = ""
    gpu: _Count = ""
    volumes: VolumeLimits = VolumeLimits()
    minio: BucketLimits = BucketLimits()


class Amount(msgspec.Struct, frozen=True, kw_only=True):
    max: int
    used: int


class AmountText(msgspec.Struct, frozen=True, kw_only=True):
    max: str
    used: str


class VolumesShown(msgspec.Struct, frozen=True, kw_only=True):
    disk: AmountText
    volumes: AmountText
    max_disk_per_volume: str
    min_disk_per_volume: str


class MaxText(msgspec.Struct, frozen=True, kw_only=True):
    max: str


class UsedText(msgspec.Struct, frozen=True, kw_only=True):
    used: str


class BucketsShown(msgspec.Struct, frozen=True, kw_only=True):
    buckets: Amount
    storage_per_bucket: MaxText
    storage_total: UsedText


class QuotaShown(msgspec.Struct, frozen=True, kw_only=True):
    user_id: str
    resources: dict[str, Amount]  # cpu in millicores, memory and ephemeral-storage in bytes, gpu in units
    volumes: VolumesShown
    minio: BucketsShown


def _with(group: str, *names: str) -> dict[str, Any]:
    """The group is given, and something in it."""
    return {"required": [group], "properties": {group: {"type": "object", "anyOf": at_least_one(*names)}}}


@router.get("/system/quotas/user", responses=result(200, QuotaShown) | answers(401, 403))
async def own_quota(app: AppDep, caller: CallerDep) -> Response:
    """What the signed-in user may have, and has."""
    if caller.is_admin:
        raise Forbidden("the admin has no quota", hint="ask for a user's: GET /system/quotas/user/{userId}")
    return JsonAnswer(_shown(await app.quotas.report(caller.uid)))


@router.get("/system/quotas/user/{user_id}", responses=result(200, QuotaShown) | answers(400, 401, 403))
async def user_quota(app: AppDep, caller: CallerDep, user_id: UserId) -> Response:
    """The same of any user, for the admin."""
    access.require_admin(caller, "see another user's quota")
    return JsonAnswer(_shown(await app.quotas.report(check_uid(user_id))))


@router.put(
    "/system/quotas/user/{user_id}",
    responses=result(200, QuotaShown) | answers(400, 401, 403),
    openapi_extra=body_of(
        QuotaBody,
        {"cpu": "4", "memory": "8Gi", "volumes": {"disk": "20Gi"}},
        anyOf=[
            *at_least_one("cpu", "memory", "ephemeral_storage"),
            _with("volumes", *VolumeLimits.__struct_fields__),
            _with("minio", *BucketLimits.__struct_fields__),
        ],
    ),
)
async def change_quota(request: Request, app: AppDep, caller: CallerDep, user_id: UserId) -> Response:
    """Other limits for a user; what is left out stays as it is. A gpu limit needs another one beside it."""
    access.require_admin(caller, "change quotas")
    check_uid(user_id)
    document = await read_document(request, dict[str, Any], caller.uid, _LARGEST_BODY)
    if document.get("ephemeral_storage") is None and _HYPHENATED in document:
        document["ephemeral_storage"] = document.pop(_HYPHENATED)
    await app.quotas.change(user_id, _change(convert(document, QuotaBody)))
    await app.engine.quota_changed(user_id)
    answer = JsonAnswer(_shown(await app.quotas.report(user_id)))
    return answer if app.people.knows(user_id) else warned(answer, [_stranger(user_id)])


def _stranger(uid: str) -> str:
    return f"nobody with the uid {uid!a} was here yet; the quota waits for them, if that is how they are called."


def _change(body: QuotaBody) -> QuotaChange:
    return QuotaChange(
        cpu=body.cpu,
        memory=body.memory,
        ephemeral_storage=body.ephemeral_storage,
        gpu=body.gpu,
        volumes=body.volumes.volumes,
        disk=body.volumes.disk,
        max_disk_per_volume=body.volumes.max_disk_per_volume,
        min_disk_per_volume=body.volumes.min_disk_per_volume,
        buckets=body.minio.buckets,
        storage_per_bucket=body.minio.storage_per_bucket,
    )


def _shown(report: QuotaReport) -> QuotaShown:
    limits = report.limits
    return QuotaShown(
        user_id=report.uid,
        resources={
            "cpu": Amount(max=limits.cpu, used=report.running.amount),
            "memory": Amount(max=limits.memory, used=report.running.size),
            "ephemeral-storage": Amount(max=limits.ephemeral_storage, used=report.disk.size),
            "gpu": Amount(max=limits.gpu, used=0),
        },
        volumes=VolumesShown(
            disk=AmountText(max=exact_size(limits.disk), used=exact_size(report.volumes.size)),
            volumes=AmountText(max=str(limits.volumes), used=str(report.volumes.amount)),
            max_disk_per_volume=exact_size(limits.max_disk_per_volume),
            min_disk_per_volume=exact_size(limits.min_disk_per_volume),
        ),
        minio=BucketsShown(
            buckets=Amount(max=limits.buckets, used=report.buckets.amount),
            storage_per_bucket=MaxText(max=exact_size(limits.storage_per_bucket)),
            storage_total=UsedText(used=quantities.show_size(report.buckets.size)),
        ),
    )
