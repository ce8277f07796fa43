"""How jobs are remembered: one row each, accepted once and ended once.

Every step is a conditional update, so a repeated or late call changes nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from hansa.kernel import errors
from hansa.services import ENDED, Invocation, Job, JobPage, Outcome, Status, Waiting, delegation
from hansa.store import in_turn
from hansa.store.database import Database
from hansa.store.tables import delegations, invocations, jobs, receipts, uploads
from hansa.store.uploads import ledger_row
from hansa.store.upsert import add_once

_NOTE = invocations.insert().inline()  # nobody asks for the number it gets
_KIND = ("service", "at", "kind", "user", "status", "client_ip")
_MORE_CALLS = (
    invocations.update()
    .where(*(invocations.c[name] == sa.bindparam(f"of_{name}") for name in _KIND))
    .values(calls=invocations.c.calls + sa.bindparam("more"))
)
_BRIEF = [column for column in jobs.c if column.name not in ("seq", "event")]

# Built once, for every job comes this way: building a statement takes longer than the database takes to carry it out.
_BEGIN = (
    jobs.update()
    .where(jobs.c.name == sa.bindparam("job"), jobs.c.status == Status.PENDING, jobs.c.phase == "here")
    .values(status=Status.RUNNING, started=sa.bindparam("now"), attempt=jobs.c.attempt + 1, reason="")
    .returning(*_BRIEF, jobs.c.event)
)
_END = jobs.update().where(jobs.c.name == sa.bindparam("job"), jobs.c.status.not_in(ENDED))
_OPEN = sa.select(jobs.c.name, jobs.c.owner, sa.func.length(jobs.c.event)).where(
    jobs.c.status.in_([Status.PENDING, Status.RUNNING])
)


def accept_job(connection: sa.Connection, job: Job, invocation: Invocation | None) -> bool:
    """Perhaps part of a larger transaction; False if a job of that name was there."""
    if invocation is not None:
        connection.execute(_NOTE, _invocation(invocation))
    return add_once(connection, jobs, _values(job))


class JobStore:
    def __init__(self, database: Database, on_end: Callable[[str], None] = lambda name: None) -> None:
        self._database = database
        self._on_end = on_end  # hears of every job that is open no more

    async def accept(self, job: Job, invocation: Invocation | None = None) -> bool:
        return await self._database.write(lambda connection: accept_job(connection, job, invocation))

    async def accept_upload(self, job: Job, bucket: str, key: str, etag: str, modified: int) -> bool:
        row = ledger_row(job.service, bucket, key, etag, modified, job.created)

        def write(connection: sa.Connection) -> bool:
            return add_once(connection, uploads, row) and add_once(connection, jobs, _values(job))

        return await self._database.write(write)

    async def begin(self, name: str, now: float) -> Job | None:
        def write(connection: sa.Connection) -> Job | None:
            row = connection.execute(_BEGIN, {"job": name, "now": now}).mappings().first()
            return _job(row) if row else None

        return await self._database.write(write)

    async def end(self, name: str, outcome: Outcome, now: float) -> bool:
        values = {
            "job": name,
            "status": Status.SUCCEEDED if outcome.succeeded else Status.FAILED,
            "finished": now,
            "exit_code": outcome.exit_code,
            "reason": outcome.reason[:4000],
            "cpu_seconds": outcome.cpu_seconds,
        }
        if outcome.reason not in delegation.LOST:  # those may start again
            values["event"] = b""  # a body is kept for as long as it may be needed, for it may be large

        def write(connection: sa.Connection) -> bool:
            return bool(connection.execute(_END, values).rowcount)

        ended = await self._database.write(write)
        self._on_end(name)
        return ended

    async def requeue_running(self, most_attempts: int, now: float) -> list[str]:
        def write(connection: sa.Connection) -> list[str]:
            ours = sa.and_(jobs.c.status == Status.RUNNING, jobs.c.phase == "here")
            lost = sa.and_(ours, jobs.c.attempt >= most_attempts)
            names = list(connection.execute(sa.select(jobs.c.name).where(lost)).scalars())
            gone = f"the manager stopped {most_attempts} times while this job ran"
            failed = {"status": Status.FAILED, "finished": now, "reason": gone, "event": b""}
            connection.execute(jobs.update().where(lost).values(failed))
            again = "the manager stopped while this job ran; it starts again"
            connection.execute(jobs.update().where(ours).values(status=Status.PENDING, started=None, reason=again))
            return names

        return await self._database.write(write)

    async def wait_again(self, name: str, reason: str) -> bool:
        running = sa.and_(jobs.c.name == name, jobs.c.status == Status.RUNNING, jobs.c.phase == "here")
        statement = jobs.update().where(running).values(status=Status.PENDING, started=None, reason=reason)
        return bool(await self._database.write(lambda c: c.execute(statement).rowcount))

    async def again(self, name: str, reasons: Sequence[str], event: bytes | None = None) -> bool:
        ended = sa.and_(jobs.c.name == name, jobs.c.status == Status.FAILED, jobs.c.reason.in_(reasons))
        fresh: dict[str, Any] = {
            "status": Status.PENDING,
            "phase": "here",
            "started": None,
            "finished": None,
            "exit_code": None,
        }
        if event is not None:
            fresh["event"] = event
        statement = jobs.update().where(ended).values(**fresh, reason="it was given to us once more")
        return bool(await self._database.write(lambda c: c.execute(statement).rowcount))

    async def waiting(self) -> list[Waiting]:
        columns = (jobs.c.name, jobs.c.service, jobs.c.owner, jobs.c.cpu, jobs.c.memory)
        pending = sa.and_(jobs.c.status == Status.PENDING, jobs.c.phase == "here")
        statement = sa.select(*columns).where(pending).order_by(jobs.c.seq)
        # in line with the writes: one that nobody waits for any more may still be under way, and is read, too
        return await self._database.write(lambda c: [Waiting(*row) for row in c.execute(statement)])

    async def open_sizes(self) -> Mapping[str, tuple[str, int]]:
        return await self._database.read(lambda c: {name: (owner, size) for name, owner, size in c.execute(_OPEN)})

    async def explain(self, name: str, reason: str) -> None:
        statement = jobs.update().where(jobs.c.name == name, jobs.c.status == Status.PENDING).values(reason=reason)
        await self._database.write(lambda c: c.execute(statement))

    async def explain_start(self, name: str, reason: str) -> None:
        running = sa.and_(jobs.c.name == name, jobs.c.status == Status.RUNNING, jobs.c.phase == "here")
        await self._database.write(lambda c: c.execute(jobs.update().where(running).values(reason=reason[:4000])))

    async def get(self, name: str) -> Job | None:
        def read(connection: sa.Connection) -> Job | None:
            statement = sa.select(*_BRIEF, jobs.c.event).where(jobs.c.name == name)
            row = connection.execute(statement).mappings().first()
            return _job(row) if row else None

        return await self._database.read(read)

    async def page(self, service: str, uid: str | None, page: str, size: int) -> JobPage:
        scope = [jobs.c.service == service, *_shown_to(uid)]
        before = [jobs.c.seq < _page_mark(page)] if page else []

        def read(connection: sa.Connection) -> JobPage:
            statement = sa.select(*_BRIEF, jobs.c.seq).where(*scope, *before).order_by(jobs.c.seq.desc()).limit(size)
            rows = connection.execute(statement).mappings().all()
            if len(rows) < size:
                return JobPage(tuple(_job(row) for row in rows), "", 0)
            last = rows[-1]["seq"]
            rest = sa.select(sa.func.count()).select_from(jobs).where(*scope, jobs.c.seq < last)
            remaining = connection.execute(rest).scalar_one()
            return JobPage(tuple(_job(row) for row in rows), str(last) if remaining else "", remaining)

        return await self._database.read(read)

    async def remove(self, names: Sequence[str]) -> None:
        def write(some: Sequence[str], connection: sa.Connection) -> None:
            connection.execute(jobs.delete().where(jobs.c.name.in_(some)))
            connection.execute(delegations.delete().where(delegations.c.job.in_(some)))

        await in_turn.write(self._database, names, write, self._on_end)

    async def names(self, service: str, uid: str | None, statuses: frozenset[Status]) -> list[str]:
        ours = (jobs.c.service == service, jobs.c.status.in_(statuses), *_shown_to(uid))
        statement = sa.select(jobs.c.name).where(*ours)
        return await self._database.read(lambda c: list(c.execute(statement).scalars()))

    async def expired(self, before: float, most: int) -> list[str]:
        # one that came from elsewhere stays for as long as its origin may still ask for it
        asked_for = sa.exists().where(receipts.c.job == jobs.c.name)
        old = sa.and_(jobs.c.finished < before, ~asked_for)
        statement = sa.select(jobs.c.name).where(old).order_by(jobs.c.finished).limit(most)
        return await self._database.read(lambda c: list(c.execute(statement).scalars()))

    async def ended(self) -> list[tuple[str, str, float]]:
        statement = sa.select(jobs.c.name, jobs.c.owner, jobs.c.finished).where(jobs.c.finished.is_not(None))
        return await self._database.read(lambda c: [(row[0], row[1], row[2]) for row in c.execute(statement)])

    async def counts(self) -> Mapping[Status, int]:
        statement = sa.select(jobs.c.status, sa.func.count()).group_by(jobs.c.status)
        return await self._database.read(lambda c: {Status(s): n for s, n in c.execute(statement)})

    async def note(self, batch: Sequence[Invocation], counted: Mapping[Invocation, int]) -> None:
        rows = [_invocation(one) for one in batch]

        def write(connection: sa.Connection) -> None:
            if rows:
                connection.execute(invocations.insert(), rows)
            for kind, calls in counted.items():
                _add_calls(connection, kind, calls)

        if rows or counted:
            await self._database.write(write)

    async def invocations(self, most: int) -> list[Invocation]:
        columns = [invocations.c[one.name] for one in fields(Invocation)]
        statement = (
            sa.select(*columns).where(invocations.c.kind != "exposed").order_by(invocations.c.id.desc()).limit(most)
        )
        rows = await self._database.read(lambda c: c.execute(statement).mappings().all())
        return [Invocation(**row) for row in reversed(rows)]

    async def forget_invocations(self, before: float) -> None:
        await in_turn.delete(self._database, invocations, invocations.c.at < before)


def _shown_to(uid: str | None) -> list[sa.ColumnElement[bool]]:
    """None stands for everybody."""
    return [] if uid is None else [sa.or_(jobs.c.owner == uid, jobs.c.viewer == uid)]


def _page_mark(page: str) -> int:
    if not (page.isascii() and page.isdigit() and len(page) <= 18):
        raise errors.Invalid(
            f"page {page[:40]!r} is not a page of this listing", hint="use next_page of the last answer"
        )
    return int(page)


def _values(job: Job) -> dict[str, Any]:
    return {column.name: getattr(job, column.name) for column in jobs.c if column.name != "seq"}


def _invocation(one: Invocation) -> dict[str, Any]:
    return {field.name: getattr(one, field.name) for field in fields(Invocation)}


def _add_calls(connection: sa.Connection, kind: Invocation, calls: int) -> None:
    """To the one row that all of this kind have."""
    row = _invocation(kind)
    if connection.execute(_MORE_CALLS, {**{f"of_{name}": row[name] for name in _KIND}, "more": calls}).rowcount == 0:
        connection.execute(_NOTE, {**row, "calls": calls})


def _job(row: sa.RowMapping) -> Job:
    return Job(
        **{column.name: row[column.name] for column in _BRIEF if column.name != "status"},
        status=Status(row["status"]),
        event=row.get("event") or b"",
    )
