"""However many rows somebody's write has, others who write have their turn before it is done."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import sqlalchemy as sa

from hansa.services import Invocation, Job, Status
from hansa.store import Database, JobStore, UploadLedger
from hansa.store.tables import invocations, jobs, uploads

MANY = 1600
OBJECTS = [("bucket", f"in/{number}", "etag", 1) for number in range(MANY)]
NAMES = [f"job-{number}" for number in range(MANY)]


async def rows_meanwhile(database: Database, table: sa.Table, change: Awaitable[None]) -> int:
    """How many there are when somebody else writes, who came right after the one who changes them."""

    def count(connection: sa.Connection) -> int:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()

    changing = asyncio.ensure_future(change)
    await asyncio.sleep(0)
    meanwhile = await database.write(count)
    await changing
    return meanwhile


async def fill(database: Database) -> None:
    store = JobStore(database)
    there = [Job(name, "gray", "alice", Status.PENDING, 1.0, 1, 1, b"") for name in NAMES]
    await asyncio.gather(*(store.accept(job) for job in there))
    call = Invocation(1.0, "sync", "gray", "alice", 201, 0.0, "127.0.0.1", "POST", "/run/gray")
    await store.note([call] * MANY, {})
    await UploadLedger(database).mark_seen("gray", OBJECTS, 1.0)


async def all_rows(database: Database, table: sa.Table) -> int:
    return await database.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())


async def test_what_was_there_before_a_service_is_noted_some_at_a_time(database: Database) -> None:
    ledger = UploadLedger(database)
    assert await rows_meanwhile(database, uploads, ledger.mark_seen("gray", OBJECTS, 1.0)) < MANY
    assert len(await ledger.seen("gray", "bucket")) == MANY
    await ledger.mark_seen("gray", [*OBJECTS[:3], ("bucket", "in/new", "etag", 1)], 2.0)
    assert len(await ledger.seen("gray", "bucket")) == MANY + 1


@pytest.mark.parametrize(
    ("table", "forget"),
    [
        (uploads, lambda database: UploadLedger(database).forget("gray", OBJECTS)),
        (uploads, lambda database: UploadLedger(database).forget_service("gray")),
        (jobs, lambda database: JobStore(database).remove(NAMES)),
        (invocations, lambda database: JobStore(database).forget_invocations(2.0)),
    ],
    ids=["object versions", "a service's ledger", "jobs", "calls"],
)
async def test_much_is_forgotten_some_at_a_time(
    database: Database, table: sa.Table, forget: Callable[[Database], Awaitable[None]]
) -> None:
    await fill(database)
    assert 0 < await rows_meanwhile(database, table, forget(database)) < MANY
    assert await all_rows(database, table) == 0


async def test_only_what_is_meant_is_forgotten(database: Database) -> None:
    ledger = UploadLedger(database)
    for service in ("gray", "other"):
        await ledger.mark_seen(service, OBJECTS[:3], 1.0)
    await ledger.forget("gray", OBJECTS[:1])
    assert await ledger.seen("gray", "bucket") == {version[1:] for version in OBJECTS[1:3]}
    await ledger.forget_service("gray")
    assert await ledger.seen("gray", "bucket") == set()
    assert len(await ledger.seen("other", "bucket")) == 3
