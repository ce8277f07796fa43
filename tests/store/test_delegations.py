"""Does a job that is given away have one holder at a time, and one run that may publish, ever?"""

import asyncio
import itertools
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from hansa.identity import Vault
from hansa.services import Job, Outcome, Status
from hansa.services.delegation import AT_HOME, NOBODY, Delegation, Receipt, new_permit
from hansa.services.delegation.ledger import adopted_name
from hansa.store import Database, DelegationStore, JobStore, ReceiptStore, make_engine, schema
from hansa.store.tables import delegations as table
from hansa.store.tables import receipts

T = TypeVar("T")
OUT = ("offering", "away")
WELL = Outcome(True, 0, "")
ATTEMPTS = 3


def job(name: str) -> Job:
    return Job(name, "gray", "alice", Status.PENDING, 100.0, 200, 1 << 20, b"body")


def offer(name: str, epoch: int, **changes: Any) -> Delegation:
    fresh = Delegation(
        job=name,
        epoch=epoch,
        phase="offering",
        cluster_id="visby",
        service="gray-v",
        endpoint="http://v",
        permit=new_permit(),
        publisher=NOBODY,
        decision={"chosen": "visby/gray-v"},
        heard=100.0,
    )
    return replace(fresh, **changes)


@dataclass(frozen=True, slots=True)
class Stores:
    jobs: JobStore
    away: DelegationStore

    async def job(self, name: str) -> Job:
        found = await self.jobs.get(name)
        assert found is not None
        return found


@pytest.fixture
async def stores(database: Database) -> Stores:
    made = Stores(JobStore(database), DelegationStore(database, Vault([Vault.new_key()])))
    await made.jobs.accept(job("a"))
    return made


async def test_a_claim_is_remembered_whole_and_its_permit_sealed(stores: Stores, database: Database) -> None:
    fresh = offer("a", 1)
    assert await stores.away.claim(fresh)
    assert await stores.away.get("a") == fresh
    assert (await stores.job("a")).phase == "offering"
    assert await stores.jobs.waiting() == []
    raw = await database.read(lambda c: str(c.execute(sa.select(table)).mappings().all()))
    assert fresh.permit not in raw


def adopted(name: str, member: str = "visby") -> Delegation:
    key = adopted_name("gray", member, "gray-v", name)
    return offer(key, 1, phase="away", cluster_id=member, named=name, decision={"service": "gray"})


async def test_jobs_of_members_are_kept_apart_from_ours_and_from_each_others(stores: Stores) -> None:
    theirs, others = adopted("a"), adopted("a", "riga")
    assert [await stores.away.adopt(one) for one in (theirs, theirs, others)] == [True, False, True]
    assert await stores.away.claim(offer("a", 1))
    assert {one.cluster_id for one in await stores.away.named("a")} == {"visby", "riga"}
    assert theirs.adopted
    assert await stores.away.get(theirs.job) == theirs
    assert await stores.away.may_publish(theirs.job, 1)
    await stores.away.heard(theirs.job, 1, 5.0, running_since=4.0)
    assert [await stores.away.finished(theirs.job, 1, 6.0) for _ in range(2)] == [True, False]
    assert await stores.away.get(theirs.job) is None  # nobody would ever remove it
    assert (await stores.job("a")).status is Status.PENDING
    ours = await stores.away.get("a")
    assert ours is not None
    assert (ours.phase, ours.publisher, ours.adopted) == ("offering", NOBODY, False)


async def test_those_of_one_member_are_counted(stores: Stores) -> None:
    elsewhere = replace(adopted("c"), service="other")
    for one in (adopted("a"), adopted("b"), adopted("a", "riga"), elsewhere):
        assert await stores.away.adopt(one)
    assert await stores.away.claim(offer("a", 1))  # which was not adopted
    assert await stores.away.adopted_at("visby", "gray-v") == 2
    assert await stores.away.finished(adopted("b").job, 1, 6.0)
    assert await stores.away.adopted_at("visby", "gray-v") == 1
    assert await stores.away.adopted_at("visby", "gray") == 0


async def test_a_job_is_found_by_its_name_at_its_member_while_it_is_there(stores: Stores) -> None:
    fresh = offer("a", 1, named="a-there")
    assert await stores.away.claim(fresh)
    assert await stores.away.named("a-there") == [fresh]
    assert await stores.away.named("a") == await stores.away.named("") == []
    assert await stores.away.take_back("a", 1, {})
    assert await stores.away.named("a-there") == []


@pytest.mark.parametrize("how", ["running", "ended", "away", "unknown", "same epoch", "earlier epoch", "published"])
async def test_what_is_not_ours_to_give_is_not_claimed(stores: Stores, how: str) -> None:
    epoch = 5
    if how == "running":
        await stores.jobs.begin("a", 1.0)
    elif how == "ended":
        await stores.jobs.end("a", WELL, 1.0)
    elif how == "away":
        assert await stores.away.claim(offer("a", 1))
        assert await stores.away.accepted("a", 1, 1.0)
    elif how in ("same epoch", "earlier epoch"):
        assert await stores.away.claim(offer("a", 3))
        epoch = 3 if how == "same epoch" else 2
    elif how == "published":
        assert await stores.away.claim(offer("a", 1))
        assert await stores.away.may_publish("a", 1)
    name = "unknown" if how == "unknown" else "a"
    before = await stores.away.get(name)
    assert not await stores.away.claim(offer(name, epoch))
    assert await stores.away.get(name) == before


async def test_two_claims_at_once_have_one_winner(stores: Stores) -> None:
    won = await asyncio.gather(*(stores.away.claim(offer("a", 1)) for _ in range(8)))
    assert sum(won) == 1


async def test_the_next_member_after_a_refusal_fences_the_first(stores: Stores) -> None:
    assert await stores.away.claim(offer("a", 1))
    assert await stores.away.claim(offer("a", 2, cluster_id="riga"))
    assert not await stores.away.accepted("a", 1, 2.0)
    assert not await stores.away.may_publish("a", 1)
    assert await stores.away.accepted("a", 2, 2.0)
    assert (await stores.job("a")).phase == "away"


async def test_taken_back_it_waits_here_again_and_the_old_run_is_fenced(stores: Stores) -> None:
    assert await stores.away.claim(offer("a", 1))
    assert await stores.away.accepted("a", 1, 2.0)
    await stores.away.heard("a", 1, 3.0, running_since=2.5)
    assert ((await stores.job("a")).status, (await stores.job("a")).started) == (Status.RUNNING, 2.5)
    assert await stores.jobs.begin("a", 3.0) is None
    assert await stores.away.take_back("a", 1, {"taken_back": "silent"})
    back = await stores.job("a")
    assert (back.status, back.phase, back.started) == (Status.PENDING, "here", None)
    known = await stores.away.get("a")
    assert known is not None
    assert (known.epoch, known.phase, known.permit, known.decision) == (2, "back", "", {"taken_back": "silent"})
    assert not await stores.away.take_back("a", 1, {})
    assert not await stores.away.may_publish("a", 1)
    assert not await stores.away.accepted("a", 1, 4.0)
    assert not await stores.away.finished("a", 2, 4.0)  # it is here, nobody can end it there
    await stores.away.heard("a", 1, 4.0, running_since=4.0)
    assert (await stores.job("a")).status is Status.PENDING
    assert await stores.jobs.begin("a", 5.0) is not None
    assert await stores.away.may_publish("a", 2)


async def test_a_run_that_publishes_is_not_replaced(stores: Stores) -> None:
    assert await stores.away.claim(offer("a", 1))
    assert await stores.away.may_publish("a", 1)  # faster than we could write down that the member has it
    assert await stores.away.accepted("a", 1, 2.0)
    assert await stores.away.may_publish("a", 1)
    assert not await stores.away.take_back("a", 1, {})
    assert not await stores.away.may_publish("a", 2)
    assert not await stores.away.may_publish("a", AT_HOME)


async def test_a_job_that_publishes_here_is_never_given_away_afterwards(stores: Stores) -> None:
    assert not await stores.away.may_publish("a", AT_HOME)  # it does not run
    assert await stores.jobs.begin("a", 1.0)
    assert not await stores.away.may_publish("a", 1)
    assert await stores.away.may_publish("a", AT_HOME)
    await stores.jobs.requeue_running(ATTEMPTS, 2.0)  # we died while its outputs were being stored
    assert not await stores.away.claim(offer("a", 1))
    assert await stores.jobs.begin("a", 3.0)
    assert await stores.away.may_publish("a", AT_HOME)
    assert await stores.away.active() == []


async def test_what_is_closed_grants_nothing(stores: Stores) -> None:
    assert await stores.away.claim(offer("a", 1))
    assert not await stores.away.finished("a", 2, 5.0)
    assert await stores.away.finished("a", 1, 5.0)
    assert not await stores.away.finished("a", 1, 6.0)
    assert not await stores.away.may_publish("a", 1)
    known = await stores.away.get("a")
    assert known is not None
    assert (known.phase, known.permit) == ("done", "")
    called_off = await stores.job("a")
    assert (called_off.status, called_off.finished) == (Status.FAILED, 5.0)
    assert await stores.away.active() == []


async def test_an_end_that_was_told_before_it_is_closed_stays(stores: Stores) -> None:
    assert await stores.away.claim(offer("a", 1))
    await stores.jobs.end("a", WELL, 4.0)
    assert await stores.away.finished("a", 1, 5.0)
    assert (await stores.job("a")).status is Status.SUCCEEDED


async def test_active_ones_are_those_that_are_out(stores: Stores) -> None:
    for name in "bcd":
        await stores.jobs.accept(job(name))
        assert await stores.away.claim(offer(name, 1))
    await stores.away.accepted("b", 1, 1.0)
    await stores.away.take_back("d", 1, {})
    assert {(one.job, one.phase) for one in await stores.away.active()} == {("b", "away"), ("c", "offering")}


async def test_with_a_job_goes_what_is_known_of_its_ways(stores: Stores) -> None:
    assert await stores.away.claim(offer("a", 1))
    await stores.jobs.remove(["a"])
    assert await stores.away.get("a") is None
    assert not await stores.away.may_publish("a", AT_HOME)


async def test_receipts_survive_a_restart_sealed_and_the_newest_permit_counts(database: Database) -> None:
    vault, jobs = Vault([Vault.new_key()]), JobStore(database)
    store = ReceiptStore(database, vault)
    keys = {"endpoint": "http://s3", "secret_key": "k3y"}
    first = Receipt("a", "gray", "lubeck", "http://l", ("lubeck",), new_permit(), keys, 1.0)
    assert await store.accept(first, job("a"))
    newer = replace(first, permit=new_permit(), path=("lubeck", "riga"))
    assert not await store.accept(newer, job("a"))
    assert await store.accept(replace(first, job="b"), job("b"))
    assert [one.name for one in await jobs.waiting()] == ["a", "b"]
    again = ReceiptStore(database, vault)
    assert again.get("a") is None
    await again.load()
    assert again.get("a") == newer
    raw = await database.read(lambda c: str(c.execute(sa.select(receipts)).mappings().all()))
    assert newer.permit not in raw
    assert "k3y" not in raw
    await again.remove("a")
    assert again.get("a") is None
    last = ReceiptStore(database, vault)
    await last.load()
    assert (last.get("a"), last.get("b") is not None) == (None, True)


@pytest.mark.parametrize("receipt_before", [True, False])
@pytest.mark.parametrize("change", [{"service": "hers"}, {"owner": "bob"}])
async def test_a_job_keeps_its_receipt_whoever_uses_its_name(
    database: Database, change: dict[str, str], receipt_before: bool
) -> None:
    """Names of jobs may be chosen, and the keys of a job are not to be replaced by anybody's."""
    vault, jobs = Vault([Vault.new_key()]), JobStore(database)
    store = ReceiptStore(database, vault)
    first = Receipt("a", "gray", "lubeck", "http://l", ("lubeck",), new_permit(), {"secret_key": "k3y"}, 1.0)
    expected = first if receipt_before else None
    assert await (store.accept(first, job("a")) if receipt_before else jobs.accept(job("a")))
    another = replace(job("a"), **change)  # type: ignore[arg-type]
    wrong = replace(first, service=another.service, permit=new_permit(), store={"secret_key": "another"})
    assert not await store.accept(wrong, another)
    again = ReceiptStore(database, vault)
    await again.load()
    assert (store.get("a"), again.get("a")) == (expected, expected)
    assert (store.of("a", "gray"), store.of("a", "hers")) == (expected, None)
    assert (again.of("a", "gray"), again.of("a", "hers")) == (expected, None)


# Any sequence of steps, by anybody, with any epoch, in any order.


@dataclass(slots=True)
class Expected:
    """One job as it should be."""

    status: Status = Status.PENDING
    phase: str = "here"
    attempt: int = 0
    epoch: int | None = None  # None: never given away
    way: str = ""  # the delegation's phase
    publisher: int = NOBODY
    granted: set[int] = field(default_factory=set)
    fenced: set[int] = field(default_factory=set)

    @property
    def ended(self) -> bool:
        return self.status in (Status.SUCCEEDED, Status.FAILED)

    def out(self, epoch: int) -> bool:
        return self.epoch == epoch and self.way in OUT


class Sequences(RuleBasedStateMachine):
    """`stores` and `run` are given by the test, for all examples."""

    stores: Stores
    runner: asyncio.Runner
    numbers: Iterator[int]

    def run(self, asked: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(asked)

    @initialize()
    def two_jobs(self) -> None:
        number = next(self.numbers)
        self.known = {f"j{number}-{letter}": Expected() for letter in "ab"}
        self.names = list(self.known)
        for name in self.names:
            assert self.run(self.stores.jobs.accept(job(name)))

    which = st.integers(0, 1)
    shift = st.sampled_from([0, 0, 0, 1, -1, -2, 2])

    def _one(self, which: int, shift: int = 0) -> tuple[str, Expected, int]:
        name = self.names[which]
        expected = self.known[name]
        return name, expected, max(0, (expected.epoch or 0) + shift)

    @rule(which=which, shift=st.sampled_from([1, 1, 1, 2, 0, -1]))
    def claim(self, which: int, shift: int) -> None:
        name, job, epoch = self._one(which, shift)
        free = job.epoch is None or (job.publisher == NOBODY and epoch > job.epoch)
        may = free and job.status is Status.PENDING and job.phase in ("here", "offering")
        assert self.run(self.stores.away.claim(offer(name, epoch))) == may
        if may:
            if job.epoch is not None:
                job.fenced.add(job.epoch)
            job.phase = job.way = "offering"
            job.epoch = epoch

    @rule(which=which, shift=shift)
    def accepted(self, which: int, shift: int) -> None:
        name, job, epoch = self._one(which, shift)
        may = job.epoch == epoch and job.way == "offering"
        assert self.run(self.stores.away.accepted(name, epoch, 2.0)) == may
        if may:
            job.phase = job.way = "away"

    @rule(which=which, shift=shift)
    def take_back(self, which: int, shift: int) -> None:
        name, job, epoch = self._one(which, shift)
        may = job.out(epoch) and job.publisher == NOBODY
        assert self.run(self.stores.away.take_back(name, epoch, {})) == may
        if may:
            job.fenced.add(epoch)
            job.epoch, job.way = epoch + 1, "back"
            if not job.ended:
                job.status, job.phase = Status.PENDING, "here"

    @rule(which=which, shift=shift, running=st.booleans())
    def heard(self, which: int, shift: int, running: bool) -> None:
        name, job, epoch = self._one(which, shift)
        self.run(self.stores.away.heard(name, epoch, 3.0, running_since=2.5 if running else None))
        if job.out(epoch) and running and job.status is Status.PENDING:
            job.status = Status.RUNNING

    @rule(which=which, shift=shift)
    def may_publish(self, which: int, shift: int) -> None:
        name, job, epoch = self._one(which, shift)
        granted = self.run(self.stores.away.may_publish(name, epoch))
        at_home = job.epoch is None and epoch == AT_HOME and (job.status, job.phase) == (Status.RUNNING, "here")
        theirs = job.epoch == epoch and job.way != "done" and job.publisher in (NOBODY, epoch)
        assert granted == (at_home or theirs)
        if granted:
            job.granted.add(epoch)
            job.publisher = epoch
            if at_home:
                job.epoch, job.way = AT_HOME, "back"
            assert epoch not in job.fenced

    @rule(which=which, shift=shift)
    def finished(self, which: int, shift: int) -> None:
        name, job, epoch = self._one(which, shift)
        may = job.out(epoch)
        assert self.run(self.stores.away.finished(name, epoch, 5.0)) == may
        if may:
            job.way = "done"
            if not job.ended:
                job.status = Status.FAILED

    @rule(which=which)
    def begin(self, which: int) -> None:
        name, job, _ = self._one(which)
        may = (job.status, job.phase) == (Status.PENDING, "here")
        assert (self.run(self.stores.jobs.begin(name, 1.0)) is not None) == may
        if may:
            job.status, job.attempt = Status.RUNNING, job.attempt + 1

    @rule(which=which, well=st.booleans())
    def end(self, which: int, well: bool) -> None:
        name, job, _ = self._one(which)
        before = job.ended
        assert self.run(self.stores.jobs.end(name, Outcome(well, 0, ""), 4.0)) != before
        if not before:
            job.status = Status.SUCCEEDED if well else Status.FAILED

    @rule()
    def restart(self) -> None:
        lost = set(self.run(self.stores.jobs.requeue_running(ATTEMPTS, 6.0)))
        for name, job in self.known.items():
            runs_here = (job.status, job.phase) == (Status.RUNNING, "here")
            assert (name in lost) == (runs_here and job.attempt >= ATTEMPTS)
            if runs_here:
                job.status = Status.FAILED if name in lost else Status.PENDING

    @invariant()
    def all_is_as_it_should_be(self) -> None:
        waiting = {one.name for one in self.run(self.stores.jobs.waiting())}
        active = {one.job for one in self.run(self.stores.away.active())}
        for name, expected in getattr(self, "known", {}).items():
            found = self.run(self.stores.job(name))
            way = self.run(self.stores.away.get(name))
            assert (found.status, found.phase, found.attempt) == (expected.status, expected.phase, expected.attempt)
            assert (way.epoch if way else None) == expected.epoch  # never falls, for the expected one never does
            if way is not None:
                assert (way.phase, way.publisher) == (expected.way, expected.publisher)
                assert (way.permit != "") == (way.phase in OUT)
            assert len(expected.granted) <= 1
            assert not expected.granted & expected.fenced
            assert (name in waiting) == ((found.status, found.phase) == (Status.PENDING, "here"))
            assert (name in active) == (expected.way in OUT)
            if not found.ended:  # somebody has it: we, or exactly the member we wrote down
                assert (found.phase == "here") == (name not in active)
                assert found.phase == "here" or (way is not None and way.phase == found.phase)


def test_no_sequence_of_steps_lets_two_runs_publish(database_url: str) -> None:
    with asyncio.Runner() as runner:

        async def open_it() -> Database:
            engine = make_engine(database_url)
            schema.upgrade(engine)
            opened = Database(engine)
            opened.start()
            return opened

        database = runner.run(open_it())
        try:
            made = Stores(JobStore(database), DelegationStore(database, Vault([Vault.new_key()])))
            given = {"stores": made, "runner": runner, "numbers": itertools.count()}
            machine = type("GivenSequences", (Sequences,), given)
            run_state_machine_as_test(
                machine,
                settings=settings(
                    max_examples=20 if database_url.startswith("sqlite") else 8,  # the same steps, less quick there
                    stateful_step_count=30,
                    deadline=None,
                    suppress_health_check=[HealthCheck.too_slow],
                ),
            )
        finally:
            runner.run(database.close())
