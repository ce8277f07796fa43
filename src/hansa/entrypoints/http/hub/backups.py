"""`/v1/backup`: the whole hub as one file."""

import asyncio
import tempfile
from typing import BinaryIO, cast

from fastapi import APIRouter, Request
from starlette.background import BackgroundTask
from starlette.responses import Response, StreamingResponse

from hansa.entrypoints.http.context import CallerDep
from hansa.entrypoints.http.hub.context import HubAppDep
from hansa.entrypoints.http.openapi import Responses, answers, native_body
from hansa.entrypoints.http.wire import decode_native, read_body
from hansa.federation import acting
from hansa.messages.backups import NewBackup

router = APIRouter(prefix="/v1", tags=["hub"], default_response_class=Response)
_LARGEST = 4096
_CHUNK = 256 * 1024
_IN_MEMORY = 8 * 2**20
_FILE: Responses = {200: {"description": "The file", "content": {"application/gzip": {"schema": {"type": "string"}}}}}


@router.post(
    "/backup",
    responses=_FILE | answers(400, 401, 403, 413, errors="problem"),
    openapi_extra=native_body(NewBackup, {"passphrase": "seven small boats"}),
)
async def backup(request: Request, app: HubAppDep, caller: CallerDep) -> Response:
    """Everything the hub knows at one moment, its secrets locked with the passphrase."""
    acting.require_admin(caller)
    asked = decode_native(await read_body(request, _LARGEST, caller.uid), NewBackup)
    spool = cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115 - closed when it was sent
    try:
        await asyncio.to_thread(app.save, asked.passphrase, spool)
        spool.seek(0)
    except BaseException:
        spool.close()
        raise
    chunks = iter(lambda: spool.read(_CHUNK), b"")
    return StreamingResponse(chunks, media_type="application/gzip", background=BackgroundTask(spool.close))
