"""`/v1/store/uploads`: where an object store that calls us back (MinIO) tells of uploads."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from hansa.bootstrap import webhooks
from hansa.entrypoints.http.context import AppDep, log_as, secret_of
from hansa.entrypoints.http.document import STORE, callable_by
from hansa.entrypoints.http.openapi import answers, raw_body
from hansa.entrypoints.http.wire import read_body
from hansa.identity import same_secret
from hansa.kernel.errors import Unauthenticated
from hansa.services import events

router = APIRouter(tags=["native"], default_response_class=Response)
_LARGEST = 256 * 1024
_SENDER = "the object store"


@router.post(
    webhooks.PATH,
    status_code=204,
    responses=answers(204, 401, 413, errors="problem", body="empty"),
    openapi_extra=raw_body("One event, as MinIO writes it.") | callable_by(STORE),
)
async def uploaded(request: Request, app: AppDep) -> Response:
    """An upload was made. It becomes a job of every service that waits for it; what else is told is passed over."""
    shown, webhook = secret_of(request, "bearer"), app.room.webhook
    if webhook is None or not same_secret(shown, webhook.token):
        raise Unauthenticated("this route is for the object store", hint="it shows a token that only it was told")
    log_as(_SENDER)
    told = events.interpret(await read_body(request, _LARGEST, _SENDER))
    if isinstance(told, events.ObjectInput):
        app.uploads.told(told.bucket, told.key, told.principal)
    return Response(status_code=204)
