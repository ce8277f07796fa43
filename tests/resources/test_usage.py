"""Figures add up, say how far they can be trusted, and stay within what the asker may see."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from hansa.resources import SERVICE_METRICS, BadMetric, Counts, Line, Scope, Usage, Window
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
    found = await usage.summary(WINDOW, Scope(frozenset({"gray", "other", "idle"}), everything=True))
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
    found = await usage.summary(WINDOW, Scope(frozenset({"other"})))
    assert (found.active, found.total, found.users, found.cpu_hours) == (1, 1, ("carol",), 0.0)
    assert next(one.status for one in found.sources if one.name == "request-logs") == "ok"
    nothing = await usage.summary(WINDOW, Scope(frozenset()))
    assert (nothing.total, nothing.requests) == (0, Counts())


async def test_breakdowns(usage: Usage) -> None:
    scope = Scope(frozenset({"gray", "other"}))
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
    found = {one.name: one.value for one in await usage.of_service(WINDOW, "gray")}
    assert tuple(found) == SERVICE_METRICS
    assert list(found.values()) == [0.5, 0.0, 1.0, 2.0, 1.0, 2.0]
    assert [one.unit for one in await usage.of_service(WINDOW, "gray", "cpu-hours")] == ["hours"]
    for odd in ("services-count", "nonsense"):
        with pytest.raises(BadMetric):
            await usage.of_service(WINDOW, "gray", odd)
