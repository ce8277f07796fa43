"""What becomes of a job whose member says for ever that it runs, or waits? Its origin's own records decide."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import msgspec
import pytest

from hansa.identity import Vault
from hansa.services import AwayJob, Backlog, Job, Limits, Service, Status
from hansa.services.delegation import NOBODY, PASSED_BACK, Delegation, Receipt, new_permit
from hansa.services.delegation.following import Follower
from hansa.services.delegation.ledger import SERVICE
from hansa.store import Database, DelegationStore, JobStore, ReceiptStore, make_engine, schema, sqlite_url

LIMITS = Limits(time_limit=100, run_limit=1, attempts=1, queue_limit=1, keep=1, page_size=1, wait_at_members=1000)
MEMBER = {"type": "oscar", "cluster_id": "visby", "service_name": "gray-v"}
GRAY = msgspec.convert({"name": "gray", "federation": {"topology": "star", "members": [MEMBER]}}, Service)


class Origin:
    """Real records of one job at a member that answers what it likes; the clock is moved by hand."""

    def __init__(self, database: Database) -> None:
        self.time = 1000.0
        self.says: AwayJob | None = AwayJob("Running")
        self.jobs = JobStore(database)
        self.delegations = DelegationStore(database, Vault([Vault.new_key()]))
        self.receipts = ReceiptStore(database, Vault([Vault.new_key()]))
        self.backlog = Backlog()
        self.ended_keys, self.stopped, self.offered = list[str](), list[str](), list[str]()

        async def away_job(*_: Any) -> AwayJob | None:
            return self.says

        async def cancel(job: str, _permit: str) -> None:
            self.stopped.append(job)

        async def end_keys(name: str) -> None:
            self.ended_keys.append(name)

        peer = SimpleNamespace(away_job=away_job, listed_job=away_job, cancel=cancel)
        room = SimpleNamespace(
            clock=SimpleNamespace(now=lambda: self.time),
            records=SimpleNamespace(get={"gray": SimpleNamespace(service=GRAY)}.get),
            delegations=self.delegations,
            jobs=self.jobs,
            receipts=self.receipts,
            backlog=self.backlog,
            limits=LIMITS,
            away_keys=SimpleNamespace(end=end_keys),
            peers=SimpleNamespace(find=lambda *_: peer),
            keyring=SimpleNamespace(credentials=self._nothing),
            dispatcher=SimpleNamespace(offer=lambda waiting: self.offered.append(waiting.name)),
        )
        self.follower = Follower(cast(Any, room), lost_after=10.0)

    async def _nothing(self, *_: Any, **__: Any) -> list[Any]:
        return [SimpleNamespace(replica="")]

    async def give_away(self, **decision: Any) -> None:
        await self.jobs.accept(Job("one", "gray", "alice", Status.PENDING, 1.0, 200, 1 << 20, b"body"))
        said = {SERVICE: "gray", **decision}
        fresh = Delegation(
            "one", 1, "offering", "visby", "gray-v", "https://visby", new_permit(), NOBODY, said, self.time, self.time
        )
        assert await self.delegations.claim(fresh)
        assert await self.delegations.accepted("one", 1, self.time)

    async def look(self, *, after: float = 0.0) -> tuple[Status, str, str]:
        """One question to the member: the job's status, who has it, and why."""
        self.time += after
        for one in await self.delegations.active():
            await self.follower.follow(one)
        found = await self.jobs.get("one")
        assert found is not None
        return found.status, found.phase, found.reason


@pytest.fixture
async def origin(tmp_path: Path) -> AsyncIterator[Origin]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    yield Origin(database)
    await database.close()


async def test_a_job_that_never_ends_is_taken_back(origin: Origin) -> None:
    await origin.give_away()
    assert (await origin.look(after=900))[:2] == (Status.RUNNING, "away")  # heard to run only now
    assert (await origin.look(after=100))[:2] == (Status.RUNNING, "away")
    status, phase, why = await origin.look(after=20)
    assert (status, phase) == (Status.PENDING, "here")
    assert "visby did not end it within 110 s" in why
    assert (origin.ended_keys, origin.stopped, origin.offered) == (["away one 1"], ["one"], ["one"])
    left = await origin.delegations.get("one")
    assert left is not None
    assert left.overdue == ("visby/gray-v",)
    assert not await origin.delegations.may_publish("one", 1)


@pytest.mark.parametrize("started", [1e12, 5.0])
async def test_its_own_word_of_when_it_began_does_not_count(origin: Origin, started: float) -> None:
    await origin.give_away()
    origin.says = AwayJob("Running", started=started)
    assert (await origin.look(after=900))[:2] == (Status.RUNNING, "away")
    assert (await origin.look(after=100))[:2] == (Status.RUNNING, "away")
    assert (await origin.look(after=20))[:2] == (Status.PENDING, "here")


@pytest.mark.parametrize("says", ["Pending", "in turns"])
async def test_one_that_never_begins_is_taken_back(origin: Origin, says: str) -> None:
    await origin.give_away()
    state: Literal["Pending", "Running"] = "Pending"
    for _ in range(20):
        origin.says = AwayJob(state)
        if (await origin.look(after=100))[1] == "here":
            break
        state = "Running" if says == "in turns" and state == "Pending" else "Pending"
    assert (await origin.look())[1] == "here"
    assert origin.time <= 1000 + 1000 + 200


async def test_after_a_long_absence_of_ours_a_member_gets_a_moment_to_tell(origin: Origin) -> None:
    await origin.give_away()
    assert (await origin.look(after=100_000))[:2] == (Status.RUNNING, "away")
    assert (await origin.look(after=9))[:2] == (Status.RUNNING, "away")
    assert (await origin.look(after=2))[:2] == (Status.PENDING, "here")


@pytest.mark.parametrize("silent", [False, True])
async def test_one_that_publishes_for_ever_fails_and_is_not_run_twice(origin: Origin, silent: bool) -> None:
    await origin.give_away()
    await origin.look()
    assert await origin.delegations.may_publish("one", 1)
    if silent:
        found = await origin.delegations.get("one")
        assert found is not None
        origin.time += 200
        await origin.follower._silent(replace(found, running=1000.0), "no answer")
        status, _, why = await origin.look()
    else:
        await origin.look(after=50)
        status, _, why = await origin.look(after=100)
    assert status is Status.FAILED
    assert "may have stored outputs" in why
    assert origin.ended_keys == ["away one 1"]
    assert origin.offered == []
    assert not await origin.delegations.may_publish("one", 1)
    assert await origin.delegations.active() == []


async def test_a_member_that_cannot_be_fenced_keeps_nobody_waiting_for_ever(origin: Origin) -> None:
    await origin.give_away(fenced=False)
    await origin.look()
    assert (await origin.look(after=105))[0] is Status.RUNNING
    status, _, why = await origin.look(after=10)
    assert status is Status.FAILED
    assert "nobody else ran it" in why
    assert origin.offered == []


async def test_keys_of_a_replicas_own_job_end_too(origin: Origin) -> None:
    permit = new_permit()
    adopted = {"adopted": True, SERVICE: "gray"}
    fresh = Delegation(
        "theirs", 1, "away", "visby", "gray-v", "https://visby", permit, NOBODY, adopted, origin.time, origin.time
    )
    assert await origin.delegations.adopt(fresh)
    for after in (1, 200, 105, 20):  # nobody here knows whether it has files, so it has the time for them
        origin.time += after
        for one in await origin.delegations.active():
            await origin.follower.follow(one)
    assert origin.ended_keys == ["away theirs 1"]
    assert await origin.delegations.active() == []


async def test_one_that_came_from_elsewhere_goes_back_there_for_only_its_origin_ends_the_keys(origin: Origin) -> None:
    one = Job("one", "gray", "alice", Status.PENDING, 1.0, 200, 1 << 20, b"body")
    keys = {"endpoint": "https://store", "access_key": "a", "secret_key": "b"}
    came = Receipt("one", "gray", "lubeck", "https://lubeck", ("lubeck",), new_permit(), keys, 1.0)
    assert await origin.receipts.accept(came, one)
    origin.backlog.add("one", "alice", 4)
    await origin.give_away()
    assert (await origin.look(after=900))[:2] == (Status.RUNNING, "away")
    assert await origin.look(after=200) == (Status.FAILED, "here", PASSED_BACK)
    assert origin.receipts.get("one") is None
    assert (origin.stopped, origin.offered) == (["one"], [])
    assert origin.backlog.held("alice").jobs == 0
    left = await origin.delegations.get("one")
    assert left is not None
    assert left.overdue == ("visby/gray-v",)
    assert await origin.jobs.again("one", (PASSED_BACK,), b"body")  # its origin gives it to us once more


@pytest.mark.parametrize("store", [{}, {"endpoint": "https://store", "access_key": "", "reach": "{}"}])
async def test_without_keys_it_stays(origin: Origin, store: dict[str, str]) -> None:
    one = Job("one", "gray", "alice", Status.PENDING, 1.0, 200, 1 << 20, b"body")
    came = Receipt("one", "gray", "lubeck", "https://lubeck", ("lubeck",), new_permit(), store, 1.0)
    assert await origin.receipts.accept(came, one)
    await origin.give_away()
    await origin.look(after=900)
    assert (await origin.look(after=200))[:2] == (Status.PENDING, "here")
    assert origin.offered == ["one"]


async def test_keys_of_a_replicas_own_job_end_when_its_service_is_gone(origin: Origin) -> None:
    adopted = {"adopted": True, SERVICE: "gone"}
    fresh = Delegation(
        "theirs", 1, "away", "visby", "gray-v", "https://visby", new_permit(), NOBODY, adopted, origin.time, origin.time
    )
    assert await origin.delegations.adopt(fresh)
    await origin.follower.follow(fresh)
    assert (origin.ended_keys, origin.stopped) == (["away theirs 1"], ["theirs"])
    assert await origin.delegations.active() == []
