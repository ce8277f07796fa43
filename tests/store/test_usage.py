"""Requests and CPU time are added up in the database, within the window and the asker's services only."""

from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from hansa.resources import Invocation, Requests
from hansa.services import Job, Outcome, Status
from hansa.store import Database, JobStore
from hansa.store.tables import invocations
from hansa.store.usage import UsageStore


def call(at: float, service: str, user: str, kind: str = "async", status: int = 201) -> dict[str, Any]:
    return {
        "at": at, "kind": kind, "service": service, "user": user, "status": status, "latency": 0.1,
        "client_ip": "127.0.0.1", "method": "POST", "path": f"/job/{service}",
    }  # fmt: skip


async def job(database: Database, name: str, service: str, ended: float | None, seconds: float = 0.0) -> None:
    """A job of alice's; one without an end waits."""
    store = JobStore(database)
    await store.accept(Job(name, service, "alice", Status.PENDING, 1.0, 500, 2**40, b""))
    if ended is not None:
        await store.begin(name, 2.0)
        await store.end(name, Outcome(True, 0, "", seconds), ended)


@pytest.fixture
async def usage(database: Database) -> UsageStore:
    calls = [
        call(10, "gray", "alice"),
        call(11, "gray", "alice"),
        call(12, "gray", "bob", "sync", 500),
        call(13, "gray", "", "exposed", 404),
        call(14, "gray", "mallory", "async", 401),
        call(15, "other", "bob"),
        call(99, "gray", "late"),
    ]
    await database.write(lambda link: link.execute(sa.insert(invocations), calls))
    await job(database, "a", "gray", 10.0, 3600.0)
    await job(database, "b", "gray", 20.0, 1800.0)
    await job(database, "c", "other", 15.0, 7200.0)
    await job(database, "d", "gray", 99.0, 1.0)
    await job(database, "e", "gray", None)
    await job(database, "f", "gray", None)
    await JobStore(database).begin("e", 3.0)
    return UsageStore(database)


async def test_requests_are_grouped(usage: UsageStore) -> None:
    expected = {
        Requests("gray", "alice", "async", 2),
        Requests("gray", "bob", "sync", 1),
        Requests("gray", "", "exposed", 1),
    }
    assert set(await usage.requests(10, 20, frozenset({"gray"}), 100)) == expected
    everything = set(await usage.requests(10, 20, None, 100))
    assert everything == {*expected, Requests("other", "bob", "async", 1)}
    assert await usage.requests(10, 20, None, 1) == [Requests("gray", "alice", "async", 2)]
    assert await usage.requests(10, 20, frozenset(), 100) == []
    many = frozenset({"gray", *(f"s{number}" for number in range(40_000))})
    assert set(await usage.requests(10, 20, many, 100)) == expected


def exposed(service: str, minute: float) -> Invocation:
    return Invocation(minute, "exposed", service, "", 0, 0.0, "", "", "")


async def test_calls_that_are_counted_together_are_one_row(database: Database) -> None:
    store, usage = JobStore(database), UsageStore(database)
    run = Invocation(3600.0, "sync", "gray", "bob", 200, 0.0, "", "POST", "/run/gray")
    await store.note([], {run: 2, replace(run, status=503): 3, replace(run, user="alice"): 1})
    await store.note([], {run: 40})
    assert set(await usage.requests(0, 4000, None, 100)) == {
        Requests("gray", "bob", "sync", 45),
        Requests("gray", "alice", "sync", 1),
    }
    assert len(await store.invocations(10)) == 3


async def test_calls_of_exposed_services_are_one_row_a_minute(database: Database) -> None:
    store, usage = JobStore(database), UsageStore(database)
    run = Invocation(61.0, "sync", "gray", "bob", 200, 0.1, "127.0.0.1", "POST", "/run/gray")
    await store.note([run], {exposed("gray", 60.0): 1000, exposed("open", 60.0): 1})
    await store.note([], {exposed("gray", 60.0): 500, exposed("gray", 120.0): 7})
    await store.note([], {})
    assert set(await usage.requests(0, 119, None, 100)) == {
        Requests("gray", "", "exposed", 1500),
        Requests("open", "", "exposed", 1),
        Requests("gray", "bob", "sync", 1),
    }
    assert (await usage.requests(0, 200, None, 1)) == [Requests("gray", "", "exposed", 1507)]
    assert await store.invocations(10) == [run]
    rows = await database.read(lambda link: link.execute(sa.select(sa.func.count()).select_from(invocations)).scalar())
    assert rows == 4


async def test_cpu_time_counts_where_it_ended(usage: UsageStore) -> None:
    assert await usage.cpu_seconds(10, 20, frozenset({"gray"})) == 5400.0
    assert await usage.cpu_seconds(10, 20, None) == 12600.0
    assert await usage.cpu_seconds(200, 300, None) == 0.0


async def test_the_latest_requests_come_first(usage: UsageStore) -> None:
    latest = await usage.latest(2)
    assert [(one.at, one.user) for one in latest] == [(99.0, "late"), (15.0, "bob")]
    assert isinstance(latest[0], Invocation)
