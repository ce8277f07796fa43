"""`/v1/inventory` and `/v1/clusters`: what the whole federation has, as one answer, as a stream, and as it was."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from hansa.entrypoints.http.context import CallerDep
from hansa.entrypoints.http.hub.context import HubDep
from hansa.entrypoints.http.hub.event_stream import EventStream
from hansa.entrypoints.http.hub.queries import Chosen, ChosenInventory, ClusterId, Period, WholePeriod
from hansa.entrypoints.http.openapi import answers, result
from hansa.entrypoints.http.wire import JsonAnswer
from hansa.federation import Hub, acting, history, inventory, selectors
from hansa.messages.inventory import Allocation, Clusters, History, Inventory

router = APIRouter(prefix="/v1", tags=["inventory"], default_response_class=Response)
_HOUR = 3600.0
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events without end: `snapshot` (the inventory), then `cluster` (one entry of it), `removed` "
        "(its id), `change` (what happened, in words)",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.get("/inventory", responses=result(200, Inventory) | answers(400, 401, errors="problem"))
async def whole(hub: HubDep, caller: CallerDep, asked: Annotated[ChosenInventory, Query()]) -> Response:
    """What clusters have and use: each, by region, and in total. Pending clusters and those that left are shown, but
    not counted."""
    selector = selectors.parse(asked.selector)

    async def made() -> bytes:
        await hub.inventory.prepare()
        return hub.inventory.answer(hub.clock.now(), hub.age, selector, nodes=asked.nodes)

    return JsonAnswer(await (made() if asked.selector else hub.answer_about_all(f"inventory {asked.nodes}", made)))


@router.get("/inventory/stream", responses=_STREAM | answers(400, 401, errors="problem"))
async def live(
    hub: HubDep,
    caller: CallerDep,
    asked: Annotated[Chosen, Query()],
    last_event_id: Annotated[
        str, Header(max_length=100, description="The id of the last event you got: only what you missed follows")
    ] = "",
) -> Response:
    """The inventory as it changes, as server-sent events: a cluster's entry at most four times a second."""
    return EventStream(hub.streams.follow(selectors.parse(asked.selector), last_event_id, person=caller.uid))


@router.get("/inventory/history", responses=result(200, History) | answers(400, 401, 404, errors="problem"))
async def past(hub: HubDep, caller: CallerDep, asked: Annotated[WholePeriod, Query()]) -> Response:
    """How it was, for charts: by the minute for two hours, by ten minutes for two days, by the hour for sixty days."""
    return JsonAnswer(await _history(hub, asked, asked.cluster, asked.region))


@router.get("/clusters", responses=result(200, Clusters) | answers(400, 401, errors="problem"))
async def clusters(hub: HubDep, caller: CallerDep, asked: Annotated[Chosen, Query()]) -> Response:
    """All clusters: who they are, how they are, and why."""
    selector = selectors.parse(asked.selector)

    async def made() -> bytes:
        return await hub.inventory.listing(hub.age, selector)

    return JsonAnswer(await (made() if asked.selector else hub.answer_about_all("clusters", made)))


@router.get(
    "/clusters/{cluster}/allocation", responses=result(200, Allocation) | answers(400, 401, 404, errors="problem")
)
async def allocation(hub: HubDep, caller: CallerDep, cluster: ClusterId) -> Response:
    """What one cluster has, uses and has left, and what part of the federation it is."""
    return JsonAnswer(inventory.allocation_of(acting.get(hub, cluster), hub.inventory.total(), hub.age))


@router.get("/clusters/{cluster}/history", responses=result(200, History) | answers(400, 401, 404, errors="problem"))
async def one_past(hub: HubDep, caller: CallerDep, cluster: ClusterId, asked: Annotated[Period, Query()]) -> Response:
    """How one cluster was, for charts."""
    return JsonAnswer(await _history(hub, asked, cluster))


async def _history(hub: Hub, asked: Period, cluster: str, region: str = "") -> History:
    now = hub.clock.now()
    end = history.moment(asked.to, now, now)
    start = history.moment(asked.start, end - _HOUR, now)
    return await history.of(hub, history.Asked(start, end, asked.points, cluster, region))
