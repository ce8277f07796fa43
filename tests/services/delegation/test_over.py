"""A member says that a job ended, and goes on being difficult: what is recorded, and when is it asked no more?"""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hansa.services import AwayJob, Job, PeerRefused, Status
from hansa.services.complaints import Complaints
from hansa.services.delegation import Delegation
from hansa.store import Database, make_engine, schema, sqlite_url
from services.delegation.test_too_long import Origin

HOUR, DAY = 3600.0, 86400.0
BROKEN = PeerRefused("visby answered 500", status=500)


class Over(Origin):
    """The member also has a log, and may fail at showing it, or at hearing that it may forget the job."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.log_trouble: PeerRefused | None = None
        self.deaf: PeerRefused | None = None
        self.asked, self.shown, self.told = 0, 0, 0
        self.kept = list[str]()
        room: Any = self.follower.room
        peer = room.peers.find()
        answered = peer.away_job

        async def away_job(*_: Any) -> AwayJob | None:
            self.asked += 1
            found: AwayJob | None = await answered()
            return found

        async def away_log(*_: Any, **__: Any) -> str:
            self.shown += 1
            if self.log_trouble is not None:
                raise self.log_trouble
            return "2026 hello\n"

        async def cancel(*_: Any) -> None:
            self.told += 1
            if self.deaf is not None:
                raise self.deaf

        peer.away_job, peer.away_log, peer.cancel = away_job, away_log, cancel
        room.logs, room.complaints = self, Complaints()

    async def turn(self, *, after: float) -> None:
        """One round of the loop: whatever is due is asked or told, and nothing else."""
        self.time += after
        due = list[Delegation]()
        await self.follower._fill(cast(Any, SimpleNamespace(fill=due.extend)))
        for one in due:
            await self.follower._follow_safely(one)

    async def turns(self, seconds: float) -> None:
        """As often as the loop takes them."""
        for _ in range(round(seconds / 2)):
            await self.turn(after=2)

    def restart(self) -> None:
        self.follower = type(self.follower)(self.follower.room, lost_after=10.0)

    async def keep(self, _name: str, text: str, *, owner: str) -> None:
        self.kept.append(f"{owner}: {text}")

    async def job(self) -> Job:
        found = await self.jobs.get("one")
        assert found is not None
        return found

    async def is_followed(self) -> bool:
        return bool(await self.delegations.active())


@pytest.fixture
async def origin(tmp_path: Path) -> AsyncIterator[Over]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    yield Over(database)
    await database.close()


async def test_a_log_that_is_kept_is_not_fetched_again(origin: Over) -> None:
    await origin.give_away()
    origin.says, origin.deaf = AwayJob("Succeeded"), BROKEN
    for _ in range(5):
        assert (await origin.look(after=2))[0] is Status.SUCCEEDED
    assert (origin.shown, origin.kept, origin.told) == (1, ["alice: 2026 hello\n"], 5)
    assert await origin.is_followed()
    origin.deaf = None
    await origin.look(after=2)
    assert not await origin.is_followed()


async def test_a_log_that_could_not_be_shown_is_asked_for_again(origin: Over) -> None:
    await origin.give_away()
    origin.says, origin.log_trouble = AwayJob("Succeeded"), BROKEN
    await origin.look(after=2)
    assert (origin.kept, await origin.is_followed()) == ([], True)
    origin.log_trouble = None
    await origin.look(after=2)
    assert (len(origin.kept), await origin.is_followed()) == (1, False)


@pytest.mark.parametrize("then", ["deaf", "without a log", "running again"])
async def test_who_is_told_in_vain_is_told_for_an_hour(origin: Over, then: str) -> None:
    await origin.give_away()
    origin.says, origin.deaf = AwayJob("Succeeded"), BROKEN
    origin.log_trouble = BROKEN if then == "without a log" else None
    await origin.look(after=2)
    if then == "running again":
        origin.says = AwayJob("Running")
    await origin.look(after=HOUR - 10)
    await origin.look(after=20)
    assert not await origin.is_followed()
    assert (await origin.job()).status is Status.SUCCEEDED
    assert set(origin.ended_keys) == {"away one 1"}
    asked = origin.asked
    await origin.look(after=2)
    assert origin.asked == asked


async def test_the_hour_is_counted_over_restarts(origin: Over) -> None:
    await origin.give_away()
    origin.says, origin.deaf = AwayJob("Succeeded"), BROKEN
    await origin.look(after=2)
    origin.restart()
    await origin.look(after=HOUR)
    await origin.look(after=2)
    assert not await origin.is_followed()


async def test_who_is_told_in_vain_is_told_less_and_less_often(origin: Over) -> None:
    """And what is written down of the end is written once."""
    await origin.give_away()
    origin.says, origin.deaf = AwayJob("Succeeded"), BROKEN
    await origin.turn(after=2)
    before = await origin.delegations.get("one")
    counts = []
    for _ in range(4):
        told = origin.told
        await origin.turns(600)
        counts.append(origin.told - told)
    assert counts[0] <= 9
    assert 1 <= counts[-1] <= 2
    assert (origin.asked, origin.shown, origin.ended_keys) == (1, 1, ["away one 1"])
    assert await origin.delegations.get("one") == before
    origin.deaf = None
    await origin.turns(600)
    assert not await origin.is_followed()


async def test_what_is_over_makes_the_loop_no_busier(origin: Over) -> None:
    """It looks often after a job that has just gone away, for most are short."""
    await origin.give_away()
    origin.says, origin.deaf = AwayJob("Succeeded"), BROKEN
    await origin.turn(after=0.1)
    assert await origin.follower._fill(cast(Any, SimpleNamespace(fill=list))) == float("inf")


@pytest.mark.parametrize("away", [False, True])
async def test_after_a_restart_it_is_still_told(origin: Over, away: bool) -> None:
    await origin.give_away()
    origin.says, origin.deaf = AwayJob("Succeeded"), BROKEN
    await origin.turns(600)
    origin.restart()
    if away:
        origin.says = BROKEN
        await origin.turns(60)
        assert origin.asked == 2
    assert await origin.is_followed()
    origin.deaf = None
    told = origin.told
    await origin.turns(120)
    assert origin.told == told + 1
    assert not await origin.is_followed()
    assert set(origin.ended_keys) == {"away one 1"}


async def test_keys_end_after_a_restart_though_the_member_says_nothing(origin: Over) -> None:
    """The manager may have died between the end of the job and that of its keys."""
    await origin.give_away()
    origin.says, origin.deaf = AwayJob("Succeeded"), BROKEN
    await origin.turn(after=2)
    origin.restart()
    origin.ended_keys.clear()
    origin.says = BROKEN
    await origin.turn(after=2)
    assert origin.ended_keys == ["away one 1"]


async def test_a_member_does_not_say_when_its_job_ended_nor_what_it_used(origin: Over) -> None:
    """Or it would be forgotten at once, and its owner's account be full."""
    await origin.give_away()
    given = origin.time
    origin.says = AwayJob("Succeeded", started=given - 391 * DAY, finished=given - 390 * DAY, cpu_seconds=1e12)
    await origin.look(after=100)
    found = await origin.job()
    assert (found.started, found.finished) == (given, given)
    assert found.cpu_seconds == 100 * 0.2
