"""`/system/buckets`: buckets, whom they are shared with, what is in them, and links to single objects."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query, Request
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import Response

from hansa import storage
from hansa.entrypoints.http.context import AppDep, CallerDep
from hansa.entrypoints.http.openapi import answers, body_of, result
from hansa.entrypoints.http.wire import JsonAnswer, read_document
from hansa.identity import ADMIN_UID
from hansa.kernel import clock, quantities
from hansa.storage import Bucket, BucketView

router = APIRouter(tags=["buckets"], default_response_class=Response)

_ADMIN_TAG = "oscar"  # how OSCAR tags what the admin owns
_LARGEST_BODY = 2**20
# Stricter than S3 only in leaving out what no pattern can say (two dots in a row, addresses of machines).
_NAME = {"pattern": "^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$"}
_KEY = {"pattern": "^[A-Za-z0-9_-][A-Za-z0-9_./-]{0,200}[A-Za-z0-9_-]$"}
_LINK_SECONDS = {"minimum": 0, "maximum": 604_800}
_PRINTABLE = {"type": "string", "pattern": "^[ -~]{0,200}$"}
_HEADERS = {
    "propertyNames": {"pattern": "^[A-WYZa-wyz][A-Za-z0-9-]{0,60}$"},
    "additionalProperties": _PRINTABLE,
    "maxProperties": 20,
}

BucketName = Annotated[str, Path(description="The bucket's name", json_schema_extra=_NAME)]


class BucketBody(msgspec.Struct, frozen=True, kw_only=True):
    bucket_name: Annotated[str, Meta(extra_json_schema=_NAME)]
    visibility: Annotated[str, Meta(extra_json_schema={"enum": ["", "private", "restricted", "public"]})] = ""
    allowed_users: Annotated[tuple[str, ...], Meta(extra_json_schema={"maxItems": 1000})] = ()


class LinkBody(msgspec.Struct, frozen=True, kw_only=True):
    object_key: Annotated[str, Meta(extra_json_schema=_KEY)]
    operation: Annotated[str, Meta(extra_json_schema={"enum": ["upload", "download"]})]
    expires_in: Annotated[int, Meta(extra_json_schema=_LINK_SECONDS)] = 0
    expires: Annotated[int, Meta(extra_json_schema=_LINK_SECONDS)] = 0  # what oscar-python calls it
    content_type: Annotated[str, Meta(extra_json_schema=_PRINTABLE)] = ""
    extra_headers: Annotated[dict[str, str], Meta(extra_json_schema=_HEADERS)] = {}


class ObjectShown(msgspec.Struct, frozen=True, kw_only=True):
    object_name: str
    size_bytes: int
    last_modified: str


class QuotaShown(msgspec.Struct, frozen=True, kw_only=True):
    max: str | UnsetType = UNSET
    max_bytes: int | UnsetType = UNSET
    source: str


class ContentsShown(msgspec.Struct, frozen=True, kw_only=True):
    used: str
    used_bytes: int
    objects: int | UnsetType = UNSET


class BucketShown(msgspec.Struct, frozen=True, kw_only=True):
    bucket_name: str
    visibility: str
    allowed_users: tuple[str, ...] | None
    owner: str
    metadata: dict[str, str]


class BucketPage(BucketShown, frozen=True, kw_only=True):
    objects: tuple[ObjectShown, ...] | UnsetType = UNSET
    storage_quota: QuotaShown
    storage_usage: ContentsShown | UnsetType = UNSET
    closed_for_writing: str | UnsetType = UNSET  # why, in words
    next_page: str | UnsetType = UNSET
    is_truncated: bool
    returned_items: int


class LinkShown(msgspec.Struct, frozen=True, kw_only=True):
    object_key: str
    operation: str
    method: str
    url: str
    expires_at: str
    headers: dict[str, str] | UnsetType = UNSET


_EXAMPLE = {"bucket_name": "photos", "visibility": "restricted", "allowed_users": ["alice@example.org"]}


@router.post(
    "/system/buckets",
    status_code=201,
    responses=answers(201, 400, 401, 403, 409),
    openapi_extra=body_of(BucketBody, _EXAMPLE),
)
async def create_bucket(request: Request, app: AppDep, caller: CallerDep) -> Response:
    """A new bucket of the caller; private unless said otherwise."""
    body = await read_document(request, BucketBody, caller.uid, _LARGEST_BODY)
    await app.buckets.create(caller, body.bucket_name, body.visibility, body.allowed_users)
    return Response(status_code=201)


@router.get("/system/buckets", responses=result(200, list[BucketShown] | None) | answers(401))
async def list_buckets(app: AppDep, caller: CallerDep) -> Response:
    """The buckets the caller may use; null when there is none, as OSCAR has it."""
    found = await app.buckets.listing(caller)
    return JsonAnswer([BucketShown(**_common(bucket)) for bucket in found] or None)


@router.put(
    "/system/buckets",
    status_code=204,
    responses=answers(204, 400, 401, 403, 404),
    openapi_extra=body_of(BucketBody, _EXAMPLE),
)
async def update_bucket(request: Request, app: AppDep, caller: CallerDep) -> Response:
    """Another visibility, or other allowed users, for a bucket that no service made."""
    body = await read_document(request, BucketBody, caller.uid, _LARGEST_BODY)
    await app.buckets.update(caller, body.bucket_name, body.visibility, body.allowed_users)
    return Response(status_code=204)


@router.get("/system/buckets/{bucket}", responses=result(200, BucketPage) | answers(400, 401, 403, 404))
async def get_bucket(
    app: AppDep,
    caller: CallerDep,
    bucket: BucketName,
    page: Annotated[str, Query(description="`next_page` of the answer before", max_length=4096)] = "",
) -> Response:
    """The bucket with a page of its objects."""
    return JsonAnswer(_page(await app.buckets.get(caller, bucket, page)))


@router.delete("/system/buckets/{bucket}", status_code=204, responses=answers(204, 400, 401, 403, 404))
async def delete_bucket(app: AppDep, caller: CallerDep, bucket: BucketName) -> Response:
    """The bucket goes, with everything in it."""
    await app.buckets.delete(caller, bucket)
    return Response(status_code=204)


@router.post(
    "/system/buckets/{bucket}/presign",
    responses=result(200, LinkShown) | answers(400, 401, 403, 404),
    openapi_extra=body_of(LinkBody, {"object_key": "in/photo.png", "operation": "upload", "expires_in": 900}),
)
async def presign(request: Request, app: AppDep, caller: CallerDep, bucket: BucketName) -> Response:
    """A link to upload or download one object without keys."""
    body = await read_document(request, LinkBody, caller.uid, _LARGEST_BODY)
    wanted = storage.link_request(
        body.object_key, body.operation, body.expires_in or body.expires, body.content_type, body.extra_headers
    )
    link = await app.buckets.link(caller, bucket, wanted)
    return JsonAnswer(
        LinkShown(
            object_key=link.request.key,
            operation=link.request.operation,
            method=link.method,
            url=link.url,
            expires_at=clock.rfc3339(link.expires),
            headers=dict(link.request.headers) or UNSET,
        )
    )


def _owner(bucket: Bucket) -> str:
    return _ADMIN_TAG if bucket.owner == ADMIN_UID else bucket.owner


def _common(bucket: Bucket) -> dict[str, Any]:
    restricted = bucket.visibility == "restricted"
    tags = {"owner_name": bucket.owner_name, "from_service": bucket.from_service}
    return {
        "bucket_name": bucket.name,
        "visibility": bucket.visibility,
        "allowed_users": bucket.allowed_users if restricted else None,
        "owner": _owner(bucket),
        "metadata": {key: value for key, value in tags.items() if value},
    }


def _page(view: BucketView) -> BucketPage:
    common = _common(view.bucket)
    owner = {"owner": _owner(view.bucket)} if view.bucket.owner else {}
    objects = tuple(
        ObjectShown(object_name=one.key, size_bytes=one.size, last_modified=clock.rfc3339(one.modified))
        for one in view.page.objects
    )
    held = view.contents
    return BucketPage(
        **{**common, "metadata": {**owner, **common["metadata"]}},
        objects=objects or UNSET,
        storage_quota=_quota(view.limit),
        storage_usage=ContentsShown(
            used=quantities.show_size(held.size), used_bytes=held.size, objects=held.objects or UNSET
        )
        if held.complete
        else UNSET,
        closed_for_writing=view.closed or UNSET,
        next_page=view.page.next_page or UNSET,
        is_truncated=bool(view.page.next_page),
        returned_items=len(objects),
    )


def _quota(limit: int | None) -> QuotaShown:
    if limit is None:
        return QuotaShown(source="unset")
    return QuotaShown(max=quantities.show_size(limit), max_bytes=limit, source="bucket")
