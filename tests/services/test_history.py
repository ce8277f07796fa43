"""Does everything that is kept for a while have an end, and nothing an earlier one?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pytest

from drivers.oidc.hand_clock import HandClock
from hansa.drivers.local import LogBook
from hansa.resources import Admission, Ledger
from hansa.services import Dispatcher, Job, Limits, Operation, Outcome, Room, Status, history
from hansa.services.credentials import AuditEntry, Keyring
from hansa.services.delegation import LOST, SUPERSEDED, Receipt, new_permit
from hansa.store import AuditStore, DelegationStore, JobStore, OperationStore, ReceiptStore
from services.credentials.clusters import VAULT, cluster
from services.credentials.conftest import database_url
from services.test_dispatch import Host, order_for

__all__ = ["database_url"]  # a fixture: SQLite, then PostgreSQL

DAY = 86_400.0
LIMITS = Limits(60, 60, 3, 100, keep=10 * DAY, page_size=10, keep_receipts=30 * DAY, keep_audit=400 * DAY)


@dataclass(slots=True)
class Part:
    """As much of a manager's room as forgetting needs."""

    jobs: JobStore
    receipts: ReceiptStore
    delegations: DelegationStore
    operations: OperationStore
    audit: AuditStore
    keyring: Keyring
    logs: LogBook
    job_host: Host
    dispatcher: Dispatcher
    clock: HandClock
    limits: Limits = LIMITS

    async def take_in(self, name: str, *, receipt: bool = True) -> None:
        job = Job(name, "gray", "alice", Status.PENDING, self.clock.now(), 100, 1024, b"")
        if not receipt:
            assert await self.jobs.accept(job)
            return
        store = {"endpoint": "http://s3", "secret_key": "k"}
        given = Receipt(name, "gray", "lubeck", "http://l", ("lubeck",), new_permit(), store, self.clock.now())
        assert await self.receipts.accept(given, job)

    async def end(self, name: str, reason: str = "") -> None:
        assert await self.jobs.end(name, Outcome(not reason, 0, reason), self.clock.now())
        await self.logs.keep(name, "its log\n", owner="alice")

    async def days_later(self, days: float) -> list[str]:
        """Moves time and lets the loop's work be done; the jobs that are left, with `+` for a receipt."""
        self.clock.ahead += days * DAY
        room = cast(Room, self)
        while await history.purge(room):
            pass
        listed = await self.jobs.names("gray", None, frozenset(Status))
        logged = [name for name in "abcdef" if await self.logs.read(name, timestamps=False) is not None]
        assert set(logged) <= set(listed)
        again = ReceiptStore(self.jobs._database, VAULT)  # what is in memory is what is in the database
        await again.load()
        held = {name for name in "abcdef" if self.receipts.get(name)}
        assert held == {name for name in "abcdef" if again.get(name)}
        return sorted(f"{name}{'+' if name in held else ''}" for name in {*listed, *held})


@asynccontextmanager
async def manager(database_url: str, folder: Path) -> AsyncIterator[Part]:
    async with cluster(database_url) as here:
        jobs, host = JobStore(here.database), Host()
        admission = Admission(Ledger(1000, 2**30))
        yield Part(
            jobs=jobs,
            receipts=ReceiptStore(here.database, VAULT),
            delegations=DelegationStore(here.database, VAULT),
            operations=OperationStore(here.database, VAULT),
            audit=here.audit,
            keyring=here.keyring,
            logs=LogBook(folder / "logs", 1 << 20),
            job_host=host,
            dispatcher=Dispatcher(jobs, host, admission, order_for, here.clock, most_attempts=3),
            clock=here.clock,
        )


async def test_jobs_of_an_origin_that_never_comes_back_have_an_end(database_url: str, tmp_path: Path) -> None:
    async with manager(database_url, tmp_path) as here:
        for name in "abc":
            await here.take_in(name)
        await here.take_in("d", receipt=False)
        for name in "abd":
            await here.end(name)
        assert await here.days_later(9) == ["a+", "b+", "c+", "d"]
        assert await here.days_later(2) == ["a+", "b+", "c+"]  # one of our own goes after ten days
        await here.receipts.remove("b")  # its origin came, and needs it no more
        assert await here.days_later(18.9) == ["a+", "c+"]
        assert await here.days_later(0.2) == ["c+"]  # thirty days after its end
        assert await here.days_later(1000) == ["c+"]  # it has not ended
        await here.end("c")
        assert await here.days_later(29.9) == ["c+"]  # and counts from then on
        assert await here.days_later(0.2) == []


async def test_a_receipt_without_a_job_has_an_end(database_url: str, tmp_path: Path) -> None:
    async with manager(database_url, tmp_path) as here:
        await here.take_in("a")
        await here.jobs.remove(["a"])  # as former versions did
        assert await here.days_later(29.9) == ["a+"]
        assert await here.days_later(0.2) == []


async def test_with_a_job_goes_its_receipt(database_url: str, tmp_path: Path) -> None:
    """There are keys in it, which the next job of that name would get."""
    async with manager(database_url, tmp_path) as here:
        for name in "ab":
            await here.take_in(name)
        await history.forget(cast(Room, here), ["a"], "it was deleted")
        assert await here.days_later(0) == ["b+"]


async def test_a_job_that_is_given_to_us_once_more_keeps_its_receipt(database_url: str, tmp_path: Path) -> None:
    async with manager(database_url, tmp_path) as here:
        await here.take_in("a")
        await here.end("a", SUPERSEDED)
        here.clock.ahead += 31 * DAY
        first = here.receipts.get("a")
        assert first is not None
        again = replace(first, permit=new_permit(), created=here.clock.now())
        job = await here.jobs.get("a")
        assert job is not None
        assert not await here.receipts.accept(again, job)
        assert await here.days_later(0) == ["a+"]  # before it is taken up again
        assert await here.jobs.again("a", [SUPERSEDED])
        assert await here.days_later(31) == ["a+"]


@pytest.mark.parametrize("reason", LOST)
async def test_a_run_that_lost_its_right_needs_no_receipt_any_more(
    database_url: str, tmp_path: Path, reason: str
) -> None:
    async with manager(database_url, tmp_path) as here:
        for name in "abc":
            await here.take_in(name)
        here.clock.ahead += 60
        await here.end("a", reason)
        await here.end("b", "exit code 1")
        assert await here.days_later(0) == ["a", "b+", "c+"]


async def test_many_are_forgotten_in_turns(database_url: str, tmp_path: Path) -> None:
    async with manager(database_url, tmp_path) as here:
        for name in "abcdef":
            await here.take_in(name)
            await here.end(name)
        long_after = here.clock.now() + 31 * DAY
        assert [await here.receipts.forget(long_after, 4) for _ in range(3)] == [4, 2, 0]


async def test_the_trail_has_an_end(database_url: str, tmp_path: Path) -> None:
    async with manager(database_url, tmp_path) as here:
        for number in range(3):
            await here.audit.note(AuditEntry(here.clock.now(), "manager", "token.rotated", "gray", str(number)))
            here.clock.ahead += 100 * DAY
        await here.days_later(99.9)
        assert [one.detail for one in await here.audit.of("gray")] == ["2", "1", "0"]
        await here.days_later(0.2)
        assert [one.detail for one in await here.audit.of("gray")] == ["2", "1"]
        await here.days_later(200)
        assert list(await here.audit.of("gray")) == []
        for number in range(5):
            await here.audit.note(AuditEntry(float(number), "manager", "token.rotated", "gray"))
        assert [await here.audit.forget(4.0, 3) for _ in range(3)] == [3, 1, 0]


@pytest.mark.parametrize("days", [29.0, 31.0])
async def test_what_is_kept_longer_than_receipts_stays(database_url: str, tmp_path: Path, days: float) -> None:
    async with manager(database_url, tmp_path) as here:
        here.limits = replace(LIMITS, keep=60 * DAY)
        await here.take_in("a")
        await here.end("a")
        assert await here.days_later(days) == (["a+"] if days < 30 else ["a"])


class Ill(Host):
    """Its disk does not let go of one of them."""

    async def discard(self, name: str) -> None:
        if name == "a":
            raise OSError("input/output error")


async def test_one_that_cannot_go_keeps_no_other(database_url: str, tmp_path: Path) -> None:
    async with manager(database_url, tmp_path) as here:
        here.job_host = Ill()
        for name in "abc":
            await here.take_in(name, receipt=False)
            await here.end(name)
        assert await here.days_later(11) == ["a"]
        here.job_host = Host()
        assert await here.days_later(0) == []


async def test_one_that_cannot_be_deleted_keeps_no_other(database_url: str, tmp_path: Path) -> None:
    async with manager(database_url, tmp_path) as here:
        here.job_host = Ill()
        for name in "abc":
            await here.take_in(name)
        with pytest.raises(OSError, match="input/output error"):
            await history.forget(cast(Room, here), ["a", "b", "c"], "it was deleted")
        assert await here.days_later(0) == ["a+"]
        here.job_host = Host()
        await history.forget(cast(Room, here), ["a"], "it was deleted")
        assert await here.days_later(0) == []


async def test_what_was_done_at_other_clusters_is_kept_as_long_as_jobs(database_url: str, tmp_path: Path) -> None:
    async with manager(database_url, tmp_path) as here:
        now = here.clock.now()
        for state in ("undoing", "undone", "committed"):
            add = Operation(state, "create", "gray", "alice", state, (), {}, now, now)
            await here.operations.add(add)
        await here.days_later(9.9)
        assert len(await here.operations.of("gray")) == 3
        await here.days_later(0.2)
        assert [one.id for one in await here.operations.of("gray")] == ["undoing"]
