"""Jobs find their end also when the database loses an answer or somebody ends them in the very first moment."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from hansa.kernel.clock import SystemClock
from hansa.kernel.errors import Temporary
from hansa.resources import NO_SHARE, Admission, Ledger, Needs, Share, Shares
from hansa.services import Dispatcher, Job, Outcome, RunOrder, Service, Status, Waiting
from hansa.store import Database, JobStore, make_engine, schema, sqlite_url


class Host:
    """Runs nothing, for as long as it is told to."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.ran = seconds, list[str]()
        self.had_ended = frozenset[str]()

    async def run(self, order: RunOrder) -> Outcome:
        self.ran.append(order.name)
        await asyncio.sleep(self.seconds)
        return Outcome(True, 0, "")

    async def ended(self) -> frozenset[str]:
        return self.had_ended

    async def discard(self, name: str) -> None: ...


class Publisher(Host):
    """Its script ends at once, and then its outputs need a word."""

    async def run(self, order: RunOrder) -> Outcome:
        self.ran.append(order.name)
        if order.name == "away":
            assert order.may_publish is not None
            return Outcome(await order.may_publish(), 0, "")
        await asyncio.sleep(self.seconds)
        return Outcome(True, 0, "")


def job(name: str, cpu: int = 100) -> Job:
    return Job(name, "gray", "alice", Status.PENDING, time.time(), cpu, 1024, b"")


def order_for(one: Job) -> RunOrder:
    return RunOrder(one.name, Service(name="gray", image="debian", script="true"), {}, {}, b"", one.cpu, one.memory, 60)


@dataclass(frozen=True, slots=True)
class Limits:
    """What keeps jobs from starting, besides room."""

    permitted: Callable[[Waiting], bool] = lambda _: True
    delegable: Callable[[str], bool] = lambda _: False
    disk: int = 0  # of every job
    disk_there: int = 1000
    share: Callable[[str], Share] = lambda _: NO_SHARE
    may_publish: Callable[[], Awaitable[bool]] | None = None  # asked by a `Publisher`
    moving: float = 3600.0


@asynccontextmanager
async def dispatching(
    folder: Path, host: Host, limits: Limits | None = None, *, patience: float = 10.0
) -> AsyncIterator[tuple[Dispatcher, JobStore, Database, Admission]]:
    engine = make_engine(sqlite_url(folder))
    schema.upgrade(engine)
    database = Database(engine, patience=patience)
    database.start()
    limits = limits or Limits()
    ledger = Ledger(1000, 2**30, disk=lambda: limits.disk_there, disk_most=1000)
    jobs, admission = JobStore(database), Admission(ledger, shares=Shares(limits.share))
    dispatcher = Dispatcher(
        jobs,
        host,
        admission,
        lambda one: replace(order_for(one), may_publish=limits.may_publish, moving=limits.moving),
        SystemClock(),
        most_attempts=3,
        permitted=limits.permitted,
        delegable=limits.delegable,
        disk_of=lambda service: limits.disk,
        publish_wait=0.05,
    )
    working = asyncio.create_task(dispatcher.work())
    try:
        yield dispatcher, jobs, database, admission
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await database.close()


async def status_of(jobs: JobStore, name: str, wanted: Status) -> Job:
    async with asyncio.timeout(10):
        while True:
            found = await jobs.get(name)
            if found is not None and found.status is wanted:
                return found
            await asyncio.sleep(0.01)


def waiting(one: Job) -> Waiting:
    return Waiting(one.name, one.service, one.owner, one.cpu, one.memory)


async def test_a_start_whose_answer_got_lost_is_no_lost_job(tmp_path: Path) -> None:
    host = Host()
    async with dispatching(tmp_path, host, patience=0.3) as (dispatcher, jobs, database, _):
        await jobs.accept(job("one"))
        # committed together with the start of the job, but later than anybody waits
        slow = asyncio.create_task(database.write(lambda c: time.sleep(0.8)))
        dispatcher.offer(waiting(job("one")))
        await status_of(jobs, "one", Status.SUCCEEDED)
        assert host.ran == ["one"]
        await asyncio.gather(slow, return_exceptions=True)


async def test_an_acceptance_nobody_heard_of_is_found(tmp_path: Path) -> None:
    async with dispatching(tmp_path, Host()) as (dispatcher, jobs, _, _):
        await jobs.accept(job("unheard"))
        dispatcher.look_again()
        await status_of(jobs, "unheard", Status.SUCCEEDED)


async def test_a_job_ended_before_its_first_step_gives_back_what_it_held(tmp_path: Path) -> None:
    async with dispatching(tmp_path, Host(60)) as (dispatcher, jobs, _, admission):
        for number in range(20):  # one of them is caught between being taken from the line and its first step
            one = job(f"early-{number}")
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
            for _ in range(number % 4):
                await asyncio.sleep(0)
            await dispatcher.end([one.name], "not wanted")
            assert (await status_of(jobs, one.name, Status.FAILED)).reason == "not wanted"
        assert (dispatcher.running, dispatcher.waiting) == (0, 0)
        assert admission.ledger.promised.cpu == 0


async def test_what_never_fits_does_not_wait_to_hear_it(tmp_path: Path) -> None:
    async with dispatching(tmp_path, Host(60)) as (dispatcher, jobs, _, _):
        for one in (job("blocker", 900), job("waiter", 900), job("giant", 4000)):
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
        ended = await status_of(jobs, "giant", Status.FAILED)
        assert "never run here" in ended.reason
        assert await status_of(jobs, "waiter", Status.PENDING)


async def test_a_cluster_that_grows_starts_what_waited_and_one_that_shrinks_keeps_what_runs(tmp_path: Path) -> None:
    async with dispatching(tmp_path, Host(60)) as (dispatcher, jobs, _, admission):
        for one in (job("first", 900), job("second", 900), job("third", 900)):
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
        await status_of(jobs, "first", Status.RUNNING)
        admission.resize(2000, 2**30)
        dispatcher.resized()
        await status_of(jobs, "second", Status.RUNNING)
        admission.resize(950, 2**30)
        dispatcher.resized()
        assert [one.name for one in dispatcher.lined_up()] == ["third"]
        assert dispatcher.running == 2
        assert not dispatcher.fits_now(Needs(1, 1))


async def test_what_waits_says_why(tmp_path: Path) -> None:
    limits = Limits(permitted=lambda one: one.owner != "carol", share=lambda who: Share(50 if who == "bob" else None))
    async with dispatching(tmp_path, Host(60), limits) as (dispatcher, jobs, _, _):
        runs, large, small = job("runs", 900), job("large", 500), job("small", 50)
        his, hers = replace(job("his"), owner="bob"), replace(job("hers"), owner="carol")
        for one in (runs, large, small, his, hers):
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
        await status_of(jobs, "runs", Status.RUNNING)
        assert dispatcher.why_waiting("runs") == ""
        assert dispatcher.why_waiting("nobody") == ""
        needs = "it waits for room: it needs 500m cpu and 1Ki of memory, 100m and 1024Mi are free"
        assert dispatcher.why_waiting("large") == needs
        assert dispatcher.why_waiting("small") == "it waits for its turn; 1 job waits before it"
        assert dispatcher.why_waiting("his") == "it needs 100m cpu, your quota is 50m"
        assert "asked first" in dispatcher.why_waiting("hers")
        with dispatcher.held_back("large"):
            assert "offered" in dispatcher.why_waiting("large")


async def test_what_only_a_member_can_take_says_so(tmp_path: Path) -> None:
    async with dispatching(tmp_path, Host(60), Limits(delegable=lambda _: True)) as (dispatcher, jobs, _, _):
        giant = job("giant", 4000)
        await jobs.accept(giant)
        dispatcher.offer(waiting(giant))
        assert "waits for a member" in dispatcher.why_waiting("giant")
        assert "4000m" in dispatcher.why_waiting("giant")


async def test_what_is_not_permitted_waits_and_holds_up_nobody_else(tmp_path: Path) -> None:
    permitted = {"bob"}
    async with dispatching(tmp_path, Host(), Limits(lambda one: one.owner in permitted)) as (dispatcher, jobs, _, _):
        for one in (job("hers"), replace(job("his"), owner="bob")):
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
        await status_of(jobs, "his", Status.SUCCEEDED)
        assert await status_of(jobs, "hers", Status.PENDING)
        permitted.add("alice")
        dispatcher.wake()
        await status_of(jobs, "hers", Status.SUCCEEDED)


async def test_disk_is_waited_for_with_a_reason(tmp_path: Path) -> None:
    async with dispatching(tmp_path, Host(30), Limits(disk=400)) as (dispatcher, jobs, _, _):
        for name in ("one", "two", "three"):
            await jobs.accept(job(name))
            dispatcher.offer(waiting(job(name)))
        await status_of(jobs, "two", Status.RUNNING)
        assert dispatcher.why_waiting("three") == "it waits for room: it needs 400 of disk, 200 are free"
        await dispatcher.end(["one"], "enough")
        await status_of(jobs, "three", Status.RUNNING)


async def test_an_owners_share_of_the_disk_holds_nobody_else_up(tmp_path: Path) -> None:
    async with dispatching(tmp_path, Host(30), Limits(disk=400, share=lambda _: Share(disk=500))) as (
        dispatcher,
        jobs,
        _,
        _,
    ):
        for each in (job("one"), job("two"), replace(job("his"), owner="bob")):
            await jobs.accept(each)
            dispatcher.offer(waiting(each))
        await status_of(jobs, "his", Status.RUNNING)
        assert "of the 500 that all runs of its owner may hold 100 are left" in dispatcher.why_waiting("two")


async def test_more_disk_than_there_ever_is(tmp_path: Path) -> None:
    async with dispatching(tmp_path, Host(), Limits(disk=1001)) as (dispatcher, jobs, _, _):
        await jobs.accept(job("one"))
        dispatcher.offer(waiting(job("one")))
        assert "of disk, this cluster has" in (await status_of(jobs, "one", Status.FAILED)).reason


async def test_a_script_that_had_ended_delivers_whatever_fits_here_now(tmp_path: Path) -> None:
    """The cluster is smaller since the manager was restarted, and full."""
    host = Host()
    host.had_ended = frozenset({"ended"})
    async with dispatching(tmp_path, host, Limits(disk=1001)) as (dispatcher, jobs, _, admission):
        admission.ledger.hold("others", Needs(1000, 2**30))
        for one in (job("ended", 4000), job("new", 4000)):
            await jobs.accept(one)
        await jobs.begin("ended", time.time())
        await dispatcher.recover()
        await status_of(jobs, "ended", Status.SUCCEEDED)
        await status_of(jobs, "new", Status.FAILED)
        assert host.ran == ["ended"]


async def test_whoever_waits_for_what_a_service_holds_for_good_stands_in_nobody_s_way(tmp_path: Path) -> None:
    async with dispatching(tmp_path, Host()) as (dispatcher, jobs, _, admission):
        assert admission.try_hold("a service that stays", Needs(100, 1024), lasting=True)
        greedy, small = job("the whole machine", 1000), replace(job("small", 100), owner="bob")
        for one in (greedy, small):
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
        await status_of(jobs, "small", Status.SUCCEEDED)
        assert "waits for room" in dispatcher.why_waiting(greedy.name)
        admission.release("a service that stays")
        await status_of(jobs, greedy.name, Status.SUCCEEDED)


async def test_a_job_that_was_in_the_way_and_is_removed_makes_room_at_once(tmp_path: Path) -> None:
    async with dispatching(tmp_path, Host(60)) as (dispatcher, jobs, _, _):
        runs, large, small = job("runs", 500), job("large", 900), replace(job("small", 100), owner="bob")
        for one in (runs, large, small):
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
        await status_of(jobs, "runs", Status.RUNNING)
        assert dispatcher.why_waiting("small").startswith("it waits for its turn")
        await dispatcher.end(["large"], "not wanted")
        await status_of(jobs, "small", Status.RUNNING)


async def test_one_beyond_its_owners_quota_lets_the_owners_others_pass_until_the_quota_grows(tmp_path: Path) -> None:
    quota = [300]
    async with dispatching(tmp_path, Host(60), Limits(share=lambda _: Share(quota[0]))) as (dispatcher, jobs, _, _):
        for one in (job("large", 500), job("first", 200), job("second", 200)):
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
        await status_of(jobs, "first", Status.RUNNING)
        assert dispatcher.why_waiting("large") == "it needs 500m cpu, your quota is 300m"
        assert dispatcher.why_waiting("second") == "it needs 200m cpu, and of your quota of 300m 100m are left"
        assert [one.name for one in dispatcher.pending()] == ["large", "second"]  # members may take either
        quota[0] = 700
        dispatcher.resized()
        await status_of(jobs, "large", Status.RUNNING)
        assert await status_of(jobs, "second", Status.PENDING)


async def test_a_run_that_waits_for_its_origins_word_holds_nothing_but_its_disk(tmp_path: Path) -> None:
    asked, word = asyncio.Event(), asyncio.Event()

    async def may_publish() -> bool:
        asked.set()
        return await word.wait()

    limits = Limits(disk=300, may_publish=may_publish)
    async with dispatching(tmp_path, Publisher(), limits) as (dispatcher, jobs, _, admission):
        for one in (job("away", cpu=1000), job("own", cpu=1000)):
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
        await asyncio.wait_for(asked.wait(), 10)
        await status_of(jobs, "own", Status.SUCCEEDED)
        assert admission.ledger.promised == Needs(0, 0, 300)
        assert admission.shares.of("alice") == Needs(0, 0, 300, "alice")
        await status_of(jobs, "away", Status.RUNNING)
        word.set()
        await status_of(jobs, "away", Status.SUCCEEDED)
        await nothing_is_held(admission)


async def test_outputs_whose_word_came_late_wait_for_room_again(tmp_path: Path) -> None:
    word = asyncio.Event()
    limits = Limits(may_publish=word.wait)
    host = Publisher(seconds=3600)
    async with dispatching(tmp_path, host, limits) as (dispatcher, jobs, _, admission):
        for one in (job("away", cpu=1000), job("own", cpu=1000)):
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
        await status_of(jobs, "own", Status.RUNNING)
        word.set()
        for _ in range(20):
            await asyncio.sleep(0)
        assert (await status_of(jobs, "away", Status.RUNNING)).name == "away"
        assert admission.ledger.promised.cpu == 1000
        await dispatcher.end(["own"], "not wanted")
        await status_of(jobs, "away", Status.SUCCEEDED)
        await nothing_is_held(admission)


@pytest.mark.parametrize("why", ["nobody makes room in time", "the cluster is too small now"])
async def test_outputs_that_get_no_room_go_all_the_same(tmp_path: Path, why: str) -> None:
    """Their origin waits for them, and would give the job up."""
    word = asyncio.Event()
    limits = Limits(may_publish=word.wait, moving=0.0 if why == "nobody makes room in time" else 3600.0)
    async with dispatching(tmp_path, Publisher(seconds=3600), limits) as (dispatcher, jobs, _, admission):
        for one in (job("away", cpu=1000), job("own", cpu=1000)):
            await jobs.accept(one)
            dispatcher.offer(waiting(one))
        await status_of(jobs, "own", Status.RUNNING)
        if why == "the cluster is too small now":
            admission.resize(500, 2**30)
        word.set()
        await status_of(jobs, "away", Status.SUCCEEDED)
        assert await status_of(jobs, "own", Status.RUNNING)
        assert admission.ledger.promised.cpu == 1000


async def test_one_that_is_ended_while_it_waits_for_a_word_leaves_nothing_held(tmp_path: Path) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def may_publish() -> bool:
        asked.set()
        return await never.wait()

    async with dispatching(tmp_path, Publisher(), Limits(disk=300, may_publish=may_publish)) as parts:
        dispatcher, jobs, _, admission = parts
        await jobs.accept(job("away"))
        dispatcher.offer(waiting(job("away")))
        await asyncio.wait_for(asked.wait(), 10)
        await dispatcher.end(["away"], "not wanted")
        await status_of(jobs, "away", Status.FAILED)
        await nothing_is_held(admission)


async def nothing_is_held(admission: Admission) -> None:
    """What a job held is given back a moment after its end is written down."""
    async with asyncio.timeout(10):
        while admission.ledger.promised != Needs(0, 0):
            await asyncio.sleep(0.01)
    assert admission.shares.of("alice") == Needs(0, 0)


class Untidy(Host):
    """Cannot clear away after one of them."""

    async def discard(self, name: str) -> None:
        if name == "one":
            raise Temporary("the store is away")


async def test_one_that_cannot_be_cleared_away_ends_no_other(tmp_path: Path) -> None:
    host = Untidy(30)
    async with dispatching(tmp_path, host) as (dispatcher, jobs, _, _):
        for name in ("one", "two"):
            await jobs.accept(job(name))
            dispatcher.offer(waiting(job(name)))
            await status_of(jobs, name, Status.RUNNING)
        await dispatcher.end(["one"], "it was deleted")
        await status_of(jobs, "one", Status.FAILED)
        await jobs.accept(job("three"))
        dispatcher.offer(waiting(job("three")))
        await status_of(jobs, "three", Status.RUNNING)
        assert host.ran == ["one", "two", "three"]  # none of them twice
