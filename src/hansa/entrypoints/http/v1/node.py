"""`/v1/node`: what this machine offers and how strongly jobs are kept apart on it."""

from fastapi import APIRouter
from starlette.responses import Response

from hansa.entrypoints.http.context import AppDep, CallerDep
from hansa.entrypoints.http.openapi import answers, result
from hansa.entrypoints.http.shapes import Node
from hansa.entrypoints.http.wire import JsonAnswer

router = APIRouter(prefix="/v1", tags=["native"], default_response_class=Response)


@router.get("/node", responses=result(200, Node) | answers(401, errors="problem"))
async def node(app: AppDep, caller: CallerDep) -> Response:
    """Capacity, what is promised, and the isolation level actually reached."""
    seen, ledger = app.nodes.look(), app.admission.ledger
    return JsonAnswer(
        {
            "cluster": app.settings.cluster.id,
            "name": app.nodes.name,
            "capacity": {"cpu": ledger.cpu, "memory": ledger.memory},
            "promised": {"cpu": ledger.promised.cpu, "memory": ledger.promised.memory},
            "used": {"cpu": sum(one.cpu_used for one in seen), "memory": sum(one.memory_used for one in seen)},
            "jobs": {"waiting": app.room.dispatcher.waiting, "running": app.room.dispatcher.running},
            "runtime": app.engine.runtime,
            "isolation": dict(app.engine.isolation),
            "drift": list(app.engine.drift()),
        }
    )


@router.get("/noop", status_code=204, responses=answers(204, errors="problem"))
@router.post("/noop", status_code=204, responses=answers(204, errors="problem"))
async def noop() -> Response:
    """Does nothing: what benchmarks compare with."""
    return Response(status_code=204)
