"""A member says that a job ended, and goes on being difficult: what is recorded, and when is it asked no more?"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hansa.services import AwayJob, Job, PeerRefused, Status
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
        room.logs = self

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
    origin.follower = type(origin.follower)(origin.follower.room, lost_after=10.0)
    await origin.look(after=HOUR)
    await origin.look(after=2)
    assert not await origin.is_followed()


async def test_a_member_does_not_say_when_its_job_ended_nor_what_it_used(origin: Over) -> None:
    """Or it would be forgotten at once, and its owner's account be full."""
    await origin.give_away()
    given = origin.time
    origin.says = AwayJob("Succeeded", started=given - 391 * DAY, finished=given - 390 * DAY, cpu_seconds=1e12)
    await origin.look(after=100)
    found = await origin.job()
    assert (found.started, found.finished) == (given, given)
    assert found.cpu_seconds == 100 * 0.2
