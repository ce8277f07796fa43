"""`/health`, `/system/info`, `/system/config`, `/system/status`: what this cluster is and how it is."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Request
from msgspec import Meta
from starlette.responses import Response

from hansa import bootstrap
from hansa.bootstrap import App
from hansa.entrypoints.http import status as status_view
from hansa.entrypoints.http.context import AppDep, CallerDep
from hansa.entrypoints.http.openapi import answers, body_of, result
from hansa.entrypoints.http.shapes import Config, Info, Ready, Status
from hansa.entrypoints.http.wire import BadBody, JsonAnswer, TextAnswer, read_document
from hansa.identity import Caller, access

router = APIRouter(tags=["system"], default_response_class=Response)

_LONGEST = 1024
_Repository = Annotated[str, Meta(extra_json_schema={"pattern": r"\S", "maxLength": _LONGEST})]


class ConfigChange(msgspec.Struct):
    """What `PUT /system/config` changes."""

    allowed_image_repositories: tuple[_Repository, ...] = ()


@router.get("/health", responses=answers(200, body="text"))
async def health() -> Response:
    """The process answers."""
    return TextAnswer("Ok")


@router.get("/ready", responses=result(200, Ready) | result(503, Ready))
async def ready(app: AppDep) -> Response:
    """Every part the manager needs answers; the body names those that do not."""
    missing = await app.missing_parts()
    body = {"ready": not missing, "missing": missing}
    return JsonAnswer(body, 503 if missing else 200)


@router.get("/system/info", responses=result(200, Info) | answers(401))
async def info(app: AppDep, caller: CallerDep) -> Response:
    """Which version runs here."""
    return JsonAnswer(bootstrap.about(app.engine.version))


@router.get("/system/config", responses=result(200, Config) | answers(401, 503))
async def config(app: AppDep, caller: CallerDep) -> Response:
    """The cluster's settings, with the caller's own keys for the object store."""
    address, keys = app.open_store.store.address, await app.store_keys(caller)
    return JsonAnswer(
        {
            "config": {
                "name": "oscar",
                "namespace": "oscar",
                "services_namespace": app.settings.cluster.services_namespace,
                "controller_service_account": "oscar-sa",
                "gpu_available": False,
                "interLink_available": False,
                "serverless_backend": "hansa",
                "yunikorn_enable": False,
                "kueue_enable": False,
                "volume_enable": True,
                "oidc_groups": _groups(app) or [""],
                "minio_quota_enabled": app.settings.quotas.enforce,
            },
            "minio_provider": {
                "endpoint": address.endpoint,
                "verify": address.verify,
                "access_key": keys.access_key,
                "secret_key": keys.secret_key,
                "region": address.region,
            },
            "allowed_image_repositories": list(app.allowed_images),
        }
    )


def _groups(app: App) -> list[str]:
    return [group for issuer in app.settings.oidc.issuers for group in issuer.groups]


@router.put(
    "/system/config",
    responses=result(200, list[str]) | answers(400, 401, 403, 409),
    openapi_extra=body_of(ConfigChange, {"allowed_image_repositories": ["ghcr.io/grycap"]}),
)
async def change_config(request: Request, app: AppDep, caller: CallerDep) -> Response:
    """The admin decides which images services may use."""
    access.require_admin(caller, "change the configuration")
    change = await read_document(request, ConfigChange, caller.uid)
    if any(not one.strip() or len(one) > _LONGEST for one in change.allowed_image_repositories):
        raise BadBody(
            f"an entry of allowed_image_repositories is blank or longer than {_LONGEST} characters",
            hint="give parts of image names; an empty list allows all images",
        )
    await app.allow_images(change.allowed_image_repositories)
    return JsonAnswer(list(change.allowed_image_repositories))


@router.get("/system/status", responses=result(200, Status) | answers(401, errors="json"))
async def status(app: AppDep, caller: CallerDep) -> Response:
    """Free and promised capacity; figures of jobs and the store are for the admin."""
    shown = access.may_view_cluster(caller)
    counts = await app.room.jobs.counts() if shown else None
    total_buckets, total_objects = 0, 0
    if shown:
        names = [bucket.name for bucket in await app.buckets.listing(Caller.admin())]
        total_buckets, total_objects = len(names), (await app.accounting.together(names)).objects
    issuers = [issuer.url for issuer in app.settings.oidc.issuers]
    return JsonAnswer(
        {
            "cluster": status_view.cluster(app.nodes.look()),
            "oscar": status_view.manager(
                name="oscar", started=app.started, counts=counts, issuers=issuers, groups=_groups(app)
            ),
            "minio": {"buckets_count": total_buckets, "total_objects": total_objects},
        }
    )
