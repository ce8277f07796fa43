"""Does a member that hangs, or lies about one job, keep anybody else's job from being followed?"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog

from hansa.services import AwayJob
from hansa.services.complaints import Complaints
from hansa.services.delegation.following import Follower
from hansa.services.delegation.lanes import Lanes
from hansa.services.delegation.ledger import NOBODY, Delegation

WITHIN = 20.0  # seconds after which a test has failed


def away(job: str, member: str, heard: float = 0.0) -> Delegation:
    return Delegation(job, 1, "away", member, "gray", f"https://{member}.example.org", "permit", NOBODY, {}, heard)


class Members:
    """A room with jobs at members. `hanging` never answer; `answers` says what is told of a job."""

    def __init__(self, *jobs: Delegation) -> None:
        self.jobs = list(jobs)
        self.hanging: set[str] = set()
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0
        self.answers: Callable[[str], AwayJob] = lambda _: AwayJob("Running")
        self.heard: asyncio.Queue[str] = asyncio.Queue()
        self.since: dict[str, float | None] = {}
        self.room = SimpleNamespace(
            clock=SimpleNamespace(now=lambda: 1000.0),
            complaints=Complaints(),
            records=SimpleNamespace(get=lambda _: None),
            dispatcher=SimpleNamespace(is_held_back=lambda _: False),
            delegations=SimpleNamespace(active=self._active, heard=self._heard),
            peers=SimpleNamespace(find=lambda cluster, _: SimpleNamespace(away_job=self._at(cluster))),
        )

    async def _active(self) -> list[Delegation]:
        return self.jobs

    async def _heard(self, job: str, *_: object, running_since: float | None) -> None:
        self.since[job] = running_since
        self.heard.put_nowait(job)

    def _at(self, cluster: str) -> Callable[[str, str], Any]:
        async def away_job(job: str, _permit: str) -> AwayJob:
            self.asked.append(job)
            if cluster not in self.hanging:
                return self.answers(job)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            await asyncio.Event().wait()
            raise AssertionError("nobody lets it go on")

        return away_job

    async def hears_of(self, job: str) -> None:
        async with asyncio.timeout(WITHIN):
            while await self.heard.get() != job:
                pass


@asynccontextmanager
async def following(members: Members) -> AsyncIterator[None]:
    task = asyncio.create_task(Follower(cast(Any, members.room), lost_after=60.0).work())
    try:
        yield
        assert not task.done(), "the loop has stopped"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def said() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as found:
        yield found


async def test_a_member_that_hangs_holds_up_nobody_elses_jobs() -> None:
    members = Members(*(away(f"stuck-{number}", "visby") for number in range(200)), away("other", "riga"))
    members.hanging = {"visby"}
    before = len(asyncio.all_tasks())
    async with following(members):
        await members.hears_of("other")
        await members.hears_of("other")
        assert members.most_at_once == 16
        assert len(asyncio.all_tasks()) - before < 30
    assert len(asyncio.all_tasks()) == before


async def test_many_members_that_hang_have_a_limit_together() -> None:
    stuck = [away(f"stuck-{member}-{number}", f"m{member}") for member in range(100) for number in range(20)]
    members = Members(*stuck, away("other", "riga"))
    members.hanging = {f"m{member}" for member in range(100)}
    async with following(members):
        await members.hears_of("other")
        await members.hears_of("other")
        assert members.most_at_once <= 256


async def test_what_one_job_raises_is_said_once_and_harms_no_other(said: list[Any]) -> None:
    def answers(job: str) -> AwayJob:
        if job == "poison":
            raise OverflowError("nobody thought of this")
        return AwayJob("Running")

    members = Members(away("poison", "visby"), away("other", "visby"))
    members.answers = answers
    async with following(members):
        for _ in range(3):
            await members.hears_of("other")
    assert members.asked.count("poison") > 1
    assert [(one["event"], one["job"]) for one in said] == [("not followed", "poison")]


async def test_a_job_that_runs_since_nobody_knows_when_runs_since_now() -> None:
    told = {"told": AwayJob("Running", 990.0), "untold": AwayJob("Running"), "waits": AwayJob("Pending")}
    members = Members(*(away(job, "visby") for job in told))
    members.answers = told.__getitem__
    async with following(members):
        await members.hears_of("waits")
    assert members.since == {"told": 990.0, "untold": 1000.0, "waits": None}


async def test_a_lane_asks_each_job_once_at_a_time_in_the_order_they_came() -> None:
    asked: list[Delegation] = []
    go_on = asyncio.Event()
    seen: asyncio.Queue[Delegation] = asyncio.Queue()

    async def ask(one: Delegation) -> None:
        asked.append(one)
        await go_on.wait()
        seen.put_nowait(one)

    lanes = Lanes(ask)
    first = [away(f"job-{number}", "visby") for number in range(20)]
    try:
        lanes.fill(first)
        await asyncio.sleep(0)
        assert asked == first[:16]
        later = [away(one.job, "visby", heard=5.0) for one in reversed(first) if one.job != "job-17"]
        lanes.fill(later)  # what waited keeps its place, with what is known by now; what is not due any more is left
        go_on.set()
        for _ in range(19):
            await asyncio.wait_for(seen.get(), WITHIN)
        assert [(one.job, one.heard) for one in asked[16:]] == [("job-16", 5.0), ("job-18", 5.0), ("job-19", 5.0)]
    finally:
        await lanes.close()
