"""How jobs given away and taken in are remembered. Permits and keys are sealed; every step is conditional."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from hansa.identity import Vault
from hansa.services import ENDED, Invocation, Job, Status, delegation
from hansa.store import in_turn
from hansa.store.database import Database
from hansa.store.jobs import accept_job
from hansa.store.tables import delegations as table
from hansa.store.tables import jobs, receipts
from hansa.store.upsert import add_once, upsert

_OUT = ("offering", "away")


class DelegationStore:
    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def claim(self, fresh: delegation.Delegation) -> bool:
        row = self._row(fresh)

        def write(connection: sa.Connection) -> bool:
            known = connection.execute(sa.select(table).where(table.c.job == fresh.job)).mappings().first()
            if known is not None and (known["publisher"] != delegation.NOBODY or known["epoch"] >= fresh.epoch):
                return False
            ours = sa.and_(
                jobs.c.name == fresh.job,
                jobs.c.status == Status.PENDING,
                # a member that refused is followed by the next one without coming back in between
                jobs.c.phase.in_(("here", "offering")),
            )
            if not connection.execute(jobs.update().where(ours).values(phase="offering")).rowcount:
                return False
            upsert(connection, table, row)
            return True

        return await self._database.write(write)

    async def adopt(self, fresh: delegation.Delegation) -> bool:
        return await self._database.write(lambda connection: add_once(connection, table, self._row(fresh)))

    async def accepted(self, job: str, epoch: int, now: float) -> bool:
        def write(connection: sa.Connection) -> bool:
            mine = sa.and_(table.c.job == job, table.c.epoch == epoch, table.c.phase == "offering")
            if not connection.execute(table.update().where(mine).values(phase="away", heard=now)).rowcount:
                return False
            connection.execute(jobs.update().where(jobs.c.name == job).values(phase="away"))
            return True

        return await self._database.write(write)

    async def take_back(
        self, job: str, epoch: int, decision: Mapping[str, Any], *, passed_back: float | None = None
    ) -> bool:
        text = json.dumps(decision)
        after: dict[str, Any] = {"phase": "here", "status": Status.PENDING, "started": None}
        if passed_back is not None:
            after |= {"status": Status.FAILED, "finished": passed_back, "reason": delegation.PASSED_BACK}

        def write(connection: sa.Connection) -> bool:
            mine = sa.and_(
                table.c.job == job,
                table.c.epoch == epoch,
                table.c.phase.in_(_OUT),
                table.c.publisher == delegation.NOBODY,
            )
            values = {"phase": "back", "epoch": epoch + 1, "permit": b"", "decision": text, "running": None}
            if not connection.execute(table.update().where(mine).values(values)).rowcount:
                return False
            back = jobs.update().where(jobs.c.name == job, jobs.c.status.in_((Status.PENDING, Status.RUNNING)))
            connection.execute(back.values(after))
            return True

        return await self._database.write(write)

    async def heard(self, job: str, epoch: int, now: float, *, running_since: float | None) -> None:
        def write(connection: sa.Connection) -> None:
            mine = sa.and_(table.c.job == job, table.c.epoch == epoch, table.c.phase.in_(_OUT))
            told: dict[str, Any] = {"heard": now}
            if running_since is not None:
                told["running"] = sa.func.coalesce(table.c.running, now)
            if not connection.execute(table.update().where(mine).values(told)).rowcount:
                return
            if running_since is not None:
                waits = sa.and_(jobs.c.name == job, jobs.c.status == Status.PENDING)
                connection.execute(jobs.update().where(waits).values(status=Status.RUNNING, started=running_since))

        await self._database.write(write)

    async def finished(self, job: str, epoch: int, now: float) -> bool:
        def write(connection: sa.Connection) -> bool:
            mine = sa.and_(table.c.job == job, table.c.epoch == epoch, table.c.phase.in_(_OUT))
            if not connection.execute(table.update().where(mine).values(phase="done", permit=b"")).rowcount:
                return False
            if delegation.is_adopted_name(job):
                connection.execute(table.delete().where(table.c.job == job))
                return True
            # nobody holds it any more, so it must not look as if it went on, even if we die before it is forgotten
            still_open = sa.and_(jobs.c.name == job, jobs.c.status.not_in(ENDED))
            called_off = {"status": Status.FAILED, "finished": now, "reason": "it was called off", "event": b""}
            connection.execute(jobs.update().where(still_open).values(called_off))
            return True

        return await self._database.write(write)

    async def may_publish(self, job: str, epoch: int) -> bool:
        def write(connection: sa.Connection) -> bool:
            mine = sa.and_(
                table.c.job == job,
                table.c.epoch == epoch,
                table.c.phase != "done",
                table.c.publisher.in_((delegation.NOBODY, epoch)),
            )
            if connection.execute(table.update().where(mine).values(publisher=epoch)).rowcount:
                return True
            if epoch != delegation.AT_HOME:
                return False
            # It was never given away. Written down all the same: should we die while its outputs are being stored,
            # it starts again here, and must not be given to a member that would store them too.
            runs = sa.and_(jobs.c.name == job, jobs.c.status == Status.RUNNING, jobs.c.phase == "here")
            if connection.execute(sa.select(jobs.c.name).where(runs)).first() is None:
                return False
            return add_once(connection, table, self._row(_at_home(job)))

        return await self._database.write(write)

    async def get(self, job: str) -> delegation.Delegation | None:
        statement = sa.select(table).where(table.c.job == job)
        row = await self._database.read(lambda c: c.execute(statement).mappings().first())
        return self._delegation(row) if row else None

    async def named(self, name: str) -> Sequence[delegation.Delegation]:
        statement = sa.select(table).where(table.c.named == name, table.c.phase.in_(_OUT))
        rows = await self._database.read(lambda c: c.execute(statement).mappings().all()) if name else []
        return [self._delegation(row) for row in rows]

    async def active(self) -> Sequence[delegation.Delegation]:
        statement = sa.select(table).where(table.c.phase.in_(_OUT))
        # beside the others' work: there may be thousands of permits to open
        return await self._database.read(lambda c: [self._delegation(row) for row in c.execute(statement).mappings()])

    async def adopted_at(self, cluster_id: str, service: str) -> int:
        there = (table.c.cluster_id == cluster_id, table.c.service == service, table.c.phase.in_(_OUT))
        adopted = table.c.job.startswith(delegation.ADOPTED_NAMES, autoescape=True)
        statement = sa.select(sa.func.count()).select_from(table).where(*there, adopted)
        return await self._database.read(lambda c: c.scalar(statement) or 0)

    def _row(self, one: delegation.Delegation) -> dict[str, Any]:
        return {
            "job": one.job,
            "epoch": one.epoch,
            "phase": one.phase,
            "cluster_id": one.cluster_id,
            "service": one.service,
            "endpoint": one.endpoint,
            "permit": self._vault.seal({"permit": one.permit}, purpose=one.kept_as) if one.permit else b"",
            "publisher": one.publisher,
            "decision": json.dumps(one.decision),
            "heard": one.heard,
            "given": one.given,
            "running": one.running,
            "named": one.named,
        }

    def _delegation(self, row: sa.RowMapping) -> delegation.Delegation:
        sealed = row["permit"]
        found = delegation.Delegation(
            job=row["job"],
            epoch=row["epoch"],
            phase=row["phase"],
            cluster_id=row["cluster_id"],
            service=row["service"],
            endpoint=row["endpoint"],
            permit="",
            publisher=row["publisher"],
            decision=json.loads(row["decision"]),
            heard=row["heard"],
            given=row["given"],
            running=row["running"],
            named=row["named"],
        )
        return replace(found, permit=self._vault.open(sealed, purpose=found.kept_as)["permit"]) if sealed else found


def _at_home(job: str) -> delegation.Delegation:
    return delegation.Delegation(
        job=job,
        epoch=delegation.AT_HOME,
        phase="back",
        cluster_id="",
        service="",
        endpoint="",
        permit="",
        publisher=delegation.AT_HOME,
        decision={},
        heard=0.0,
    )


class ReceiptStore:
    """Kept in memory too: an order for a job that came from elsewhere is made without waiting."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault
        self._receipts: dict[str, delegation.Receipt] = {}

    async def load(self) -> None:
        known = sa.select(receipts, jobs.c.service).outerjoin(jobs, jobs.c.name == receipts.c.job)
        rows = await self._database.read(lambda c: c.execute(known).mappings().all())
        for row in rows:
            opened = self._vault.open(row["sealed"], purpose=row["job"])
            permit = opened.pop("permit")
            self._receipts[row["job"]] = delegation.Receipt(
                row["job"],
                row["service"] or "",
                row["origin"],
                row["endpoint"],
                tuple(json.loads(row["path"])),
                permit,
                opened,
                row["created"],
            )

    def get(self, job: str) -> delegation.Receipt | None:
        return self._receipts.get(job)

    def of(self, job: str, service: str) -> delegation.Receipt | None:
        found = self._receipts.get(job)
        return found if found is not None and found.service == service else None

    def from_origin(self, origin: str) -> Sequence[str]:
        return [one.job for one in self._receipts.values() if one.origin == origin and not one.ours]

    async def accept(self, receipt: delegation.Receipt, job: Job, invocation: Invocation | None = None) -> bool:
        row = {
            "job": receipt.job,
            "origin": receipt.origin,
            "endpoint": receipt.endpoint,
            "path": json.dumps(list(receipt.path)),
            "sealed": self._vault.seal({**receipt.store, "permit": receipt.permit}, purpose=receipt.job),
            "created": receipt.created,
        }

        whose = sa.select(jobs.c.service, jobs.c.owner).where(jobs.c.name == job.name)

        def write(connection: sa.Connection) -> tuple[bool, bool]:
            before = connection.execute(whose).first()
            ours = before is None or tuple(before) == (job.service, job.owner)
            if ours:
                upsert(connection, receipts, row)
            return ours, accept_job(connection, job, invocation)

        # In memory first: should the database's answer get lost, the job may be found there and started, and must not
        # be taken for one of our own.
        self._receipts.setdefault(receipt.job, receipt)
        ours, fresh = await self._database.write(write)
        if ours:
            self._receipts[receipt.job] = receipt
        elif self._receipts.get(receipt.job) is receipt:
            del self._receipts[receipt.job]
        return fresh

    async def remove(self, *jobs: str) -> None:
        held = [job for job in jobs if job in self._receipts]

        def write(some: Sequence[str], connection: sa.Connection) -> None:
            connection.execute(receipts.delete().where(receipts.c.job.in_(some)))

        await in_turn.write(self._database, held, write, lambda job: self._receipts.pop(job, None))

    async def forget(self, before: float, most: int) -> int:
        ended_or_gone = sa.or_(
            sa.and_(jobs.c.status.in_(ENDED), jobs.c.finished < before),
            jobs.c.name.is_(None),
        )
        lost = sa.and_(
            jobs.c.status == Status.FAILED,
            jobs.c.reason.in_(delegation.LOST),
            receipts.c.created < jobs.c.finished,  # not of a run that is about to begin
        )
        known = receipts.outerjoin(jobs, jobs.c.name == receipts.c.job)
        over = (
            sa.select(receipts.c.job, receipts.c.created)
            .select_from(known)
            # a receipt is written before its job is taken up again
            .where(sa.or_(sa.and_(receipts.c.created < before, ended_or_gone), lost))
            .limit(most)
        )

        def write(connection: sa.Connection) -> list[tuple[str, float]]:
            """In one transaction: a job that is given to us once more just now keeps its receipt."""
            found = [(row.job, row.created) for row in connection.execute(over)]
            if found:
                names = [job for job, _ in found]
                connection.execute(receipts.delete().where(receipts.c.job.in_(names)))
                # whoever gives us such a job once more brings its body along
                over_now = sa.and_(jobs.c.name.in_(names), jobs.c.status.in_(ENDED))
                connection.execute(jobs.update().where(over_now).values(event=b""))
            return found

        forgotten = await self._database.write(write)
        for job, created in forgotten:
            if (held := self._receipts.get(job)) is not None and held.created == created:
                del self._receipts[job]
        return len(forgotten)
