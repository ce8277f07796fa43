"""`/system/metrics`: who used what, for the whole cluster, by group, or for one service."""

import csv
import io
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from hansa.entrypoints.http.context import AppDep, CallerDep
from hansa.entrypoints.http.openapi import answers, result
from hansa.entrypoints.http.parameters import Flag, ServiceName, flag
from hansa.entrypoints.http.wire import JsonAnswer
from hansa.identity import Caller, access
from hansa.kernel import names
from hansa.kernel.errors import Forbidden, NotFound
from hansa.resources import GROUPS, SERVICE_METRICS, BadMetric, Line, Metric, Scope, Source, Summary, Window
from hansa.services import Record

router = APIRouter(tags=["metrics"], default_response_class=Response)

_MOMENT = {"pattern": r"^(20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}Z)?$"}

Start = Annotated[str, Query(description="RFC 3339; a day before the end if left out", json_schema_extra=_MOMENT)]
End = Annotated[str, Query(description="RFC 3339; now if left out", json_schema_extra=_MOMENT)]


class SourceShown(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    status: str
    notes: str | UnsetType = UNSET


class Country(msgspec.Struct, frozen=True, kw_only=True):
    country: str
    request_count: int


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    services_count_active: int
    services_count_total: int
    cpu_hours_total: float
    gpu_hours_total: float
    requests_count_total: int
    requests_count_sync: int
    requests_count_async: int
    requests_count_exposed: int
    countries_count: int
    countries: tuple[Country, ...]
    users_count: int
    users: tuple[str, ...]


class SummaryShown(msgspec.Struct, frozen=True, kw_only=True):
    start: str
    end: str
    totals: Totals
    sources: tuple[SourceShown, ...]


class ByService(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    requests_count_total: int
    requests_count_sync: int
    requests_count_async: int
    requests_count_exposed: int
    unique_users_count: int
    users: tuple[str, ...] | UnsetType = UNSET
    countries: tuple[Country, ...] = ()


class ByUser(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    executions_count: int
    countries: tuple[Country, ...] = ()


class ByCountry(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    executions_count: int
    unique_users_count: int
    countries: tuple[Country, ...]


class Breakdown(msgspec.Struct, frozen=True, kw_only=True):
    start: str
    end: str
    group_by: str


class ServiceBreakdown(Breakdown, frozen=True, kw_only=True):
    items: list[ByService]


class UserBreakdown(Breakdown, frozen=True, kw_only=True):
    items: list[ByUser]


class CountryBreakdown(Breakdown, frozen=True, kw_only=True):
    items: list[ByCountry]


class MetricShown(msgspec.Struct, frozen=True, kw_only=True):
    metric: str
    value: float
    unit: str | UnsetType = UNSET
    sources: tuple[SourceShown, ...]


class ServiceMetrics(msgspec.Struct, frozen=True, kw_only=True):
    service_name: str
    start: str
    end: str
    metrics: tuple[MetricShown, ...]


class OneMetric(msgspec.Struct, frozen=True, kw_only=True):
    service_id: str
    metric: str
    start: str
    end: str
    value: float
    unit: str | UnsetType = UNSET
    sources: tuple[SourceShown, ...]


@router.get("/system/metrics", responses=result(200, SummaryShown) | answers(400, 401, errors="json"))
async def summary(app: AppDep, caller: CallerDep, start: Start = "", end: End = "") -> Response:
    """Sums over all services the caller can see. Users are counted; others are named to the admin's view only."""
    window = Window.of(start, end, app.clock.now())
    found = await app.usage.summary(window, _scope(app.room.records.all(), caller))
    first, last = window.shown()
    totals = _totals(found, _named(found.users, caller))
    return JsonAnswer(SummaryShown(start=first, end=last, totals=totals, sources=_sources(found.sources)))


@router.get(
    "/system/metrics/breakdown",
    responses=result(200, ServiceBreakdown, UserBreakdown, CountryBreakdown, csv=True)
    | answers(400, 401, errors="json"),
)
async def breakdown(
    app: AppDep,
    caller: CallerDep,
    group_by: Annotated[str, Query(json_schema_extra={"enum": list(GROUPS)})],
    start: Start = "",
    end: End = "",
    include_users: Flag = "",
    format: Annotated[str, Query(json_schema_extra={"enum": ["json", "csv"]})] = "json",
) -> Response:
    """The same by service, user or country; as JSON, or as CSV without the lists of users. By user, the caller's own
    line only, unless with the admin's view."""
    window = Window.of(start, end, app.clock.now())
    wanted = format.strip().lower()
    if wanted not in ("json", "csv"):
        raise BadMetric("invalid format", hint="use json or csv")
    with_users = flag("include_users", include_users)
    if wanted == "csv" and with_users:
        raise BadMetric("include_users is not supported for csv", hint="ask for json")
    lines = await app.usage.breakdown(window, _scope(app.room.records.all(), caller), group_by)
    by = group_by.strip().lower()
    items = [
        _item(by, line, _named(line.users, caller) if with_users else UNSET)
        for line in lines
        if by != "user" or _named((line.key,), caller)
    ]
    if wanted == "csv":
        return Response(_table(by, items), media_type="text/csv")
    first, last = window.shown()
    return JsonAnswer({"start": first, "end": last, "group_by": group_by, "items": items})


@router.get(
    "/system/metrics/{service}",
    responses=result(200, ServiceMetrics, OneMetric) | answers(400, 401, 403, 404, errors="json"),
)
async def of_service(
    app: AppDep,
    caller: CallerDep,
    service: ServiceName,
    metric: Annotated[str, Query(json_schema_extra={"enum": ["", *SERVICE_METRICS]})] = "",
    start: Start = "",
    end: End = "",
) -> Response:
    """All figures of one service, or the one asked for."""
    record = app.room.records.get(names.service(service))
    if record is None:
        raise NotFound(f"there is no service {service}", hint="check the name")
    if not _visible(record, caller):
        raise Forbidden(f"you may not see service {service}", hint="ask its owner to share it with you")
    window = Window.of(start, end, app.clock.now())
    found = await app.usage.of_service(window, caller.uid, service, metric)
    first, last = window.shown()
    if not metric.strip():
        shown = tuple(MetricShown(**_metric(one)) for one in found)
        return JsonAnswer(ServiceMetrics(service_name=service, start=first, end=last, metrics=shown))
    return JsonAnswer(OneMetric(service_id=service, start=first, end=last, **_metric(found[0])))


def _scope(records: Sequence[Record], caller: Caller) -> Scope:
    seen = frozenset(record.service.name for record in records if _visible(record, caller))
    return Scope(caller.uid, seen, everything=caller.is_admin)


def _visible(record: Record, caller: Caller) -> bool:
    service = record.service
    return access.may_see(caller, owner=service.owner, visibility=service.visibility, allowed=service.allowed_users)


def _named(users: Sequence[str], caller: Caller) -> tuple[str, ...]:
    """Whom the caller may know of: who else used a shared service is not their business."""
    return tuple(one for one in users if caller.admin_view or one == caller.uid)


def _sources(sources: Sequence[Source]) -> tuple[SourceShown, ...]:
    return tuple(SourceShown(name=one.name, status=one.status, notes=one.notes or UNSET) for one in sources)


def _totals(found: Summary, users: tuple[str, ...]) -> Totals:
    return Totals(
        services_count_active=found.active,
        services_count_total=found.total,
        cpu_hours_total=found.cpu_hours,
        gpu_hours_total=0.0,
        requests_count_total=found.requests.called,
        requests_count_sync=found.requests.sync,
        requests_count_async=found.requests.queued,
        requests_count_exposed=found.requests.exposed,
        countries_count=0,
        countries=(),
        users_count=len(found.users),
        users=users,
    )


def _metric(one: Metric) -> dict[str, Any]:
    return {
        "metric": one.name,
        "value": one.value,
        "unit": one.unit or UNSET,
        "sources": _sources(one.sources),
    }


def _item(group_by: str, line: Line, users: tuple[str, ...] | UnsetType) -> ByService | ByUser | ByCountry:
    counts = line.counts
    if group_by == "user":
        return ByUser(key=line.key, executions_count=counts.executions)
    if group_by == "country":
        return ByCountry(
            key=line.key,
            executions_count=counts.executions,
            unique_users_count=len(line.users),
            countries=(Country(country=line.key, request_count=counts.executions),),
        )
    return ByService(
        key=line.key,
        requests_count_total=counts.called,
        requests_count_sync=counts.sync,
        requests_count_async=counts.queued,
        requests_count_exposed=counts.exposed,
        unique_users_count=len(line.users),
        users=users,
    )


_COLUMNS = {
    "service": (
        "key",
        "membership",
        "requests_count_total",
        "requests_count_sync",
        "requests_count_async",
        "requests_count_exposed",
        "unique_users_count",
        "countries",
    ),
    "user": ("key", "membership", "executions_count", "countries"),
    "country": ("key", "membership", "executions_count", "unique_users_count", "countries"),
}


def _table(group_by: str, items: Sequence[ByService | ByUser | ByCountry]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS[group_by], lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for item in items:
        countries = "|".join(f"{one.country}:{one.request_count}" for one in item.countries)
        # Which users belong to the cluster's own roster is not known here, so that column stays empty.
        writer.writerow({**msgspec.structs.asdict(item), "membership": "", "countries": countries})
    return text.getvalue()
