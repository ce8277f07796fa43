"""Figures add up, say how far they can be trusted, and stay within what the asker may see."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from hansa.resources import (
    SERVICE_METRICS,
    AskedTooMuch,
    BadMetric,
    Counts,
    Invocation,
    Line,
    Requests,
    Scope,
    Summary,
    Usage,
    Window,
)
from hansa.services import Job, Outcome, Status
from hansa.store import Database, JobStore, make_engine, schema, sqlite_url
from hansa.store.tables import invocations
from hansa.store.usage import UsageStore

NOW = 1_800_000_000.0
WINDOW = Window.of("", "", NOW)
CALLS = [
    ("gray", "alice", "async"),
    ("gray", "alice", "async"),
    ("gray", "bob", "sync"),
    ("gray", "", "exposed"),
    ("other", "carol", "async"),
    ("gone", "bob", "sync"),
]


@pytest.fixture
async def usage(tmp_path: Path) -> AsyncIterator[Usage]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    rows = [
        {
            "at": NOW - 60, "kind": kind, "service": service, "user": user, "status": 200, "latency": 0.1,
            "client_ip": "", "method": "POST", "path": "/",
        }
        for service, user, kind in CALLS
    ]  # fmt: skip
    jobs = JobStore(database)
    try:
        await database.write(lambda link: link.execute(sa.insert(invocations), rows))
        await jobs.accept(Job("a", "gray", "alice", Status.PENDING, NOW - 90, 4000, 1, b""))
        await jobs.begin("a", NOW - 80)
        await jobs.end("a", Outcome(True, 0, "", 1800.0), NOW - 60)
        yield Usage(UsageStore(database), most_groups=5)
    finally:
        await database.close()


async def test_the_admin_sees_everything_also_what_is_gone(usage: Usage) -> None:
    found = await usage.summary(WINDOW, Scope("alice", frozenset({"gray", "other", "idle"}), everything=True))
    assert (found.active, found.total) == (3, 4)
    assert found.requests == Counts(sync=2, queued=3, exposed=1)
    assert found.users == ("alice", "bob", "carol")
    assert found.cpu_hours == 0.5
    assert {source.name: source.status for source in found.sources} == {
        "service-inventory": "ok",
        "usage-metrics": "partial",
        "request-logs": "partial",  # five groups are all this one counts
        "country": "missing",
        "exposed-request-logs": "ok",
    }


async def test_others_see_the_services_they_may_see(usage: Usage) -> None:
    found = await usage.summary(WINDOW, Scope("alice", frozenset({"other"})))
    assert (found.active, found.total, found.users, found.cpu_hours) == (1, 1, ("carol",), 0.0)
    assert next(one.status for one in found.sources if one.name == "request-logs") == "ok"
    nothing = await usage.summary(WINDOW, Scope("alice", frozenset()))
    assert (nothing.total, nothing.requests) == (0, Counts())


async def test_breakdowns(usage: Usage) -> None:
    scope = Scope("alice", frozenset({"gray", "other"}))
    assert await usage.breakdown(WINDOW, scope, "Service") == [
        Line("gray", Counts(sync=1, queued=2, exposed=1), ("alice", "bob")),
        Line("other", Counts(queued=1), ("carol",)),
    ]
    assert [(line.key, line.counts.executions) for line in await usage.breakdown(WINDOW, scope, "user")] == [
        ("alice", 2),
        ("bob", 1),
        ("carol", 1),
    ]
    assert [(line.key, line.counts.executions) for line in await usage.breakdown(WINDOW, scope, "country")] == [
        ("unknown", 4)
    ]
    with pytest.raises(BadMetric):
        await usage.breakdown(WINDOW, scope, "moon")


async def test_one_service(usage: Usage) -> None:
    found = {one.name: one.value for one in await usage.of_service(WINDOW, "alice", "gray")}
    assert tuple(found) == SERVICE_METRICS
    assert list(found.values()) == [0.5, 0.0, 1.0, 2.0, 1.0, 2.0]
    assert [one.unit for one in await usage.of_service(WINDOW, "alice", "gray", "cpu-hours")] == ["hours"]
    for odd in ("services-count", "nonsense"):
        with pytest.raises(BadMetric):
            await usage.of_service(WINDOW, "alice", "gray", odd)


class Slow:
    """Records that answer when they are told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.asked = 0

    async def requests(
        self, start: float, end: float, services: frozenset[str] | None, most: int
    ) -> Sequence[Requests]:
        self.asked += 1
        await self.go_on.wait()
        return []

    async def cpu_seconds(self, start: float, end: float, services: frozenset[str] | None) -> float:
        return 0.0

    async def latest(self, most: int) -> Sequence[Invocation]:
        return []


async def test_one_question_of_each_asker_at_a_time_and_not_any_number_of_them() -> None:
    records = Slow()
    usage = Usage(records)

    def ask(who: str) -> asyncio.Task[Summary]:
        return asyncio.create_task(usage.summary(WINDOW, Scope(who, frozenset({"gray"}))))

    greedy = [ask("mallory") for _ in range(20)]
    others = [ask("alice"), ask("bob")]
    await asyncio.wait(greedy, return_when=asyncio.FIRST_EXCEPTION)
    assert {type(one.exception()) for one in greedy if one.done()} == {AskedTooMuch}
    assert records.asked == 3
    records.go_on.set()
    answered = await asyncio.gather(*greedy, *others, return_exceptions=True)
    assert [type(one) for one in answered].count(Summary) == 16 + 2
