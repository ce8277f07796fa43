"""Who used what, and when? Figures for `/system/metrics`, added up by the database from requests and ended jobs.

A request is one `/job`, `/run` or exposed call that reached its service. CPU time is what was measured on jobs
that ended within the window; what synchronous and exposed services use is not measured, and the answer says so.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from hansa.kernel.errors import Invalid, Kind, Temporary
from hansa.resources.window import Window

SERVICE_METRICS = (
    "cpu-hours",
    "gpu-hours",
    "requests-sync-per-service",
    "requests-async-per-service",
    "requests-exposed-per-service",
    "users-per-service",
)
CLUSTER_METRICS = ("services-count", "requests-per-user", "countries-count", "countries-list")
GROUPS = ("service", "user", "country")
UNKNOWN_COUNTRY = "unknown"
_SECONDS_PER_HOUR = 3600.0
_MOST_QUESTIONS = 16  # of one asker, the one that is being answered included
_A_MOMENT = 2.0  # seconds


class BadMetric(Invalid):
    """A metric, group or format is not known here."""

    code = "usage.bad-metric"


class AskedTooMuch(Temporary):
    """Too many questions of one person for figures wait already."""

    code, kind = "usage.asked-too-much", Kind.TOO_MANY


@dataclass(frozen=True, slots=True)
class Scope:
    """Who asks, and whose figures they may see."""

    asker: str
    services: frozenset[str]  # those that exist now
    everything: bool = False  # also what is remembered of services that are gone


@dataclass(frozen=True, slots=True)
class Requests:
    """How often one user called one service in one way."""

    service: str
    user: str
    kind: str  # async | sync | exposed
    count: int


@dataclass(frozen=True, slots=True)
class Invocation:
    """One request to run something, as `/system/logs` and the metrics show it; or many that are counted together, see
    `call_notes`."""

    at: float
    kind: Literal["async", "sync", "exposed"]
    service: str
    user: str
    status: int
    latency: float
    client_ip: str
    method: str
    path: str


class UsageRecords(Protocol):
    async def requests(
        self, start: float, end: float, services: frozenset[str] | None, most: int
    ) -> Sequence[Requests]:
        """At most `most` groups; `services` None means all."""
        ...

    async def cpu_seconds(self, start: float, end: float, services: frozenset[str] | None) -> float: ...
    async def latest(self, most: int) -> Sequence[Invocation]:
        """Newest first."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """How far a figure can be trusted."""

    name: str
    status: str  # ok | partial | missing
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    active: int
    total: int
    cpu_hours: float
    requests: "Counts"
    users: tuple[str, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    sync: int = 0
    queued: int = 0  # "async" on the wire
    exposed: int = 0

    @property
    def called(self) -> int:
        return self.sync + self.queued

    @property
    def executions(self) -> int:
        return self.called + self.exposed


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a breakdown."""

    key: str
    counts: Counts
    users: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    value: float
    unit: str
    sources: tuple[Source, ...]


_CPU = Source("usage-metrics", "partial", "measured on ended jobs; synchronous and exposed runs are not measured")
_NO_GPU = Source("usage-metrics", "missing", "GPU time is not measured")
_CALLS = Source("request-logs", "ok")
_CUT = Source("request-logs", "partial", "too many users and services in this window; ask for a shorter one")
_EXPOSED = Source("exposed-request-logs", "ok")
_INVENTORY = Source("service-inventory", "ok")
_COUNTRY = Source("country", "missing", "no GeoIP data: where requests come from is not known")


@dataclass(slots=True)
class _Asker:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    questions: int = 0  # that are not answered yet


class Usage:
    def __init__(self, records: UsageRecords, most_groups: int = 50_000) -> None:
        self._records = records
        self._most = most_groups
        self._askers: dict[str, _Asker] = {}

    @asynccontextmanager
    async def _turn(self, asker: str) -> AsyncIterator[None]:
        """One question of each at a time: the few that the database takes at once are those of different people."""
        known = self._askers.setdefault(asker, _Asker())
        if known.questions >= _MOST_QUESTIONS:
            raise AskedTooMuch(
                f"{known.questions} questions of yours for figures are not answered yet",
                hint="wait for the answers, or ask for a shorter window",
                retry_after=_A_MOMENT,
            )
        known.questions += 1
        try:
            async with known.turn:
                yield
        finally:
            known.questions -= 1
            if not known.questions:
                del self._askers[asker]

    async def latest(self, most: int) -> Sequence[Invocation]:
        """The last requests, newest first."""
        return await self._records.latest(most)

    async def summary(self, window: Window, scope: Scope) -> Summary:
        requests, calls = await self._requests(window, scope)
        return Summary(
            active=len(scope.services),
            total=len(scope.services | {one.service for one in requests}),
            cpu_hours=await self._cpu_hours(window, scope),
            requests=_counts(requests),
            users=_users(requests),
            sources=(_INVENTORY, _CPU, calls, _COUNTRY, _EXPOSED),
        )

    async def breakdown(self, window: Window, scope: Scope, group_by: str) -> list[Line]:
        keys: dict[str, Callable[[Requests], str]] = {
            "service": lambda one: one.service,
            "user": lambda one: one.user,
            "country": lambda _: UNKNOWN_COUNTRY,
        }
        key = keys.get(group_by.strip().lower())
        if key is None:
            raise BadMetric(f"group_by {group_by[:40]!r} is not known", hint="use service, user or country")
        requests, _ = await self._requests(window, scope)
        if key is not keys["service"]:
            # Callers of an exposed service are not signed in with us, so they belong to nobody.
            requests = [one for one in requests if one.kind != "exposed"]
        grouped: dict[str, list[Requests]] = {}
        for one in requests:
            grouped.setdefault(key(one), []).append(one)
        return [Line(name, _counts(ones), _users(ones)) for name, ones in sorted(grouped.items())]

    async def of_service(self, window: Window, asker: str, service: str, metric: str = "") -> list[Metric]:
        """All figures of one service, or one of them."""
        wanted = metric.strip()
        if wanted and wanted not in SERVICE_METRICS:
            known = "does not exist for a single service" if wanted in CLUSTER_METRICS else "is not known"
            raise BadMetric(f"metric {wanted[:60]!r} {known}", hint="use one of " + ", ".join(SERVICE_METRICS))
        scope = Scope(asker, frozenset({service}))
        requests, calls = await self._requests(window, scope)
        counts = _counts(requests)
        found = {
            "cpu-hours": Metric("cpu-hours", await self._cpu_hours(window, scope), "hours", (_CPU,)),
            "gpu-hours": Metric("gpu-hours", 0.0, "hours", (_NO_GPU,)),
            "requests-sync-per-service": _number("requests-sync-per-service", counts.sync, calls),
            "requests-async-per-service": _number("requests-async-per-service", counts.queued, calls),
            "requests-exposed-per-service": _number("requests-exposed-per-service", counts.exposed, _EXPOSED),
            "users-per-service": _number("users-per-service", len(_users(requests)), calls),
        }
        return [found[wanted]] if wanted else [found[name] for name in SERVICE_METRICS]

    async def _requests(self, window: Window, scope: Scope) -> tuple[list[Requests], Source]:
        services = None if scope.everything else scope.services
        start, end = window.start.timestamp(), window.end.timestamp()
        async with self._turn(scope.asker):
            found = list(await self._records.requests(start, end, services, self._most))
        return found, _CUT if len(found) >= self._most else _CALLS

    async def _cpu_hours(self, window: Window, scope: Scope) -> float:
        services = None if scope.everything else scope.services
        start, end = window.start.timestamp(), window.end.timestamp()
        async with self._turn(scope.asker):
            return await self._records.cpu_seconds(start, end, services) / _SECONDS_PER_HOUR


def _number(name: str, value: int, source: Source) -> Metric:
    return Metric(name, float(value), "", (source,))


def _counts(requests: Iterable[Requests]) -> Counts:
    sums = {"sync": 0, "async": 0, "exposed": 0}
    for one in requests:
        sums[one.kind] = sums.get(one.kind, 0) + one.count
    return Counts(sums["sync"], sums["async"], sums["exposed"])


def _users(requests: Iterable[Requests]) -> tuple[str, ...]:
    return tuple(sorted({one.user for one in requests if one.user and one.kind != "exposed"}))
