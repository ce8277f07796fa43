"""Is the hub alive, and is it ready? What load balancers and supervisors ask, without credentials."""

from fastapi import APIRouter
from starlette.responses import Response

from hansa.entrypoints.http.hub.context import HubAppDep
from hansa.entrypoints.http.openapi import answers, result
from hansa.entrypoints.http.shapes import Ready
from hansa.entrypoints.http.wire import JsonAnswer, TextAnswer

router = APIRouter(tags=["system"], default_response_class=Response)


@router.get("/health", responses=answers(200, body="text"))
async def health() -> Response:
    """The process answers."""
    return TextAnswer("Ok")


@router.get("/ready", responses=result(200, Ready) | result(503, Ready))
async def ready(app: HubAppDep) -> Response:
    """503 names what is missing. Reads go on from memory then, and say how old it is; changes are refused."""
    missing = await app.missing_parts()
    return JsonAnswer({"ready": not missing, "missing": missing}, status_code=503 if missing else 200)
