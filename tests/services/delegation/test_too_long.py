"""What becomes of a job whose member says for ever that it runs, or waits, or no? Its origin's own records decide."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import msgspec
import pytest

from hansa.identity import Vault
from hansa.kernel.errors import HansaError, Temporary, Unauthenticated
from hansa.services import Address, AwayJob, Backlog, Job, Limits, Outcome, PeerRefused, Service, Status
from hansa.services.delegation import NOBODY, PASSED_BACK, Delegation, Receipt, new_permit
from hansa.services.delegation.following import Follower
from hansa.services.delegation.ledger import DROPPED, MAIN, OF, SERVICE, adopted_name
from hansa.store import Database, DelegationStore, JobStore, ReceiptStore, make_engine, schema, sqlite_url

LIMITS = Limits(time_limit=100, run_limit=1, attempts=1, queue_limit=1, keep=1, page_size=1, wait_at_members=1000)
MEMBER = {"type": "oscar", "cluster_id": "visby", "service_name": "gray-v"}
GRAY = msgspec.convert({"name": "gray", "federation": {"topology": "star", "members": [MEMBER]}}, Service)


class Origin:
    """Real records of one job at a member that answers what it likes; the clock is moved by hand."""

    def __init__(self, database: Database) -> None:
        self.time = 1000.0
        self.says: AwayJob | Exception | None = AwayJob("Running")
        self.log: str | Exception = "done"
        self.jobs = JobStore(database)
        self.delegations = DelegationStore(database, Vault([Vault.new_key()]))
        self.receipts = ReceiptStore(database, Vault([Vault.new_key()]))
        self.backlog = Backlog()
        self.looked_again = False
        self.ended_keys, self.stopped, self.offered = list[str](), list[str](), list[str]()

        async def away_job(*_: Any) -> AwayJob | None:
            if isinstance(self.says, Exception):
                raise self.says
            return self.says

        async def away_log(*_: Any, **__: Any) -> str:
            if isinstance(self.log, Exception):
                raise self.log
            return self.log

        async def keep_log(*_: Any, **__: Any) -> None: ...

        async def cancel(job: str, _permit: str) -> None:
            self.stopped.append(job)

        async def end_keys(name: str) -> None:
            self.ended_keys.append(name)

        async def capabilities() -> frozenset[str]:
            return frozenset()

        oscar = Address("visby", "https://visby", kind="oscar")
        peer = SimpleNamespace(
            address=oscar,
            capabilities=capabilities,
            away_job=away_job,
            listed_job=away_job,
            away_log=away_log,
            cancel=cancel,
        )
        room = SimpleNamespace(
            clock=SimpleNamespace(now=lambda: self.time),
            records=SimpleNamespace(get={"gray": SimpleNamespace(service=GRAY)}.get),
            delegations=self.delegations,
            jobs=self.jobs,
            receipts=self.receipts,
            backlog=self.backlog,
            limits=LIMITS,
            logs=SimpleNamespace(keep=keep_log),
            away_keys=SimpleNamespace(end=end_keys),
            peers=SimpleNamespace(find=lambda *_: peer),
            keyring=SimpleNamespace(credentials=self._nothing),
            dispatcher=SimpleNamespace(surely=self._surely, offer=lambda waiting: self.offered.append(waiting.name)),
        )
        self.follower = Follower(cast(Any, room), lost_after=10.0)

    @contextlib.contextmanager
    def _surely(self) -> Iterator[None]:
        """What is cut short is looked for among all that wait."""
        try:
            yield
        except HansaError:
            self.looked_again = True
            raise

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
            with contextlib.suppress(ssl.SSLError):  # which is told when all is done that can be done
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


NO = [
    PeerRefused("visby answered 403", status=403),
    PeerRefused("visby answered 404: no page of a manager", status=404),
    PeerRefused("visby answered something that is not JSON", status=200),
    PeerRefused("visby sends us elsewhere", status=302),
    Unauthenticated("no credentials for this cluster"),
]


@pytest.mark.parametrize("no", NO, ids=lambda no: no.message)
async def test_who_never_says_what_became_of_a_job_loses_it_like_one_that_is_silent(
    origin: Origin, no: HansaError
) -> None:
    await origin.give_away()
    await origin.look()
    origin.says = no
    assert (await origin.look(after=9))[:2] == (Status.RUNNING, "away")  # it may be well again
    status, phase, why = await origin.look(after=2)
    assert (status, phase) == (Status.PENDING, "here")
    assert no.message in why
    assert (origin.ended_keys, origin.offered) == (["away one 1"], ["one"])
    assert not await origin.delegations.may_publish("one", 1)


async def test_nor_is_a_job_whose_outputs_it_may_have_stored_run_twice(origin: Origin) -> None:
    await origin.give_away()
    await origin.look()
    assert await origin.delegations.may_publish("one", 1)
    origin.says = NO[0]
    assert (await origin.look(after=50))[0] is Status.RUNNING
    status, _, why = await origin.look(after=300)
    assert status is Status.FAILED
    assert "may have stored outputs" in why
    assert (origin.ended_keys, origin.offered) == (["away one 1"], [])
    assert await origin.delegations.active() == []


async def test_what_nobody_foresaw_is_silence(origin: Origin) -> None:
    await origin.give_away()
    await origin.look()
    origin.says = ssl.SSLError("bad record")
    assert (await origin.look(after=9))[:2] == (Status.RUNNING, "away")
    status, phase, why = await origin.look(after=2)
    assert (status, phase) == (Status.PENDING, "here")
    assert "SSLError" in why


async def test_nor_does_it_keep_a_job_from_ending(origin: Origin) -> None:
    await origin.give_away()
    origin.says = AwayJob("Succeeded")
    origin.log = ssl.SSLError("bad record")
    assert (await origin.look())[0] is Status.SUCCEEDED
    assert origin.ended_keys == ["away one 1"]
    assert [one.job for one in await origin.delegations.active()] == ["one"]  # it is asked again
    origin.log = "done"
    await origin.look()
    assert await origin.delegations.active() == []


@pytest.mark.parametrize("at", ["get", "explain"])
async def test_one_that_was_taken_back_is_not_forgotten_when_the_database_goes_away(
    origin: Origin, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    await origin.give_away()
    origin.says = None

    async def down(*_: Any) -> None:
        raise Temporary("the database gave no answer")

    take_back = origin.delegations.take_back

    async def then_down(*given: Any, **more: Any) -> bool:
        done = await take_back(*given, **more)
        monkeypatch.setattr(origin.jobs, at, down)
        return done

    monkeypatch.setattr(origin.delegations, "take_back", then_down)
    [one] = await origin.delegations.active()
    with pytest.raises(Temporary):
        await origin.follower.follow(one)
    assert origin.offered == (["one"] if at == "explain" else [])
    assert origin.looked_again
    assert [waiting.name for waiting in await origin.jobs.waiting()] == ["one"]


def theirs(origin: Origin, service: str = "gray") -> Delegation:
    """A job of visby's, which calls it as we call one of ours."""
    name, when = adopted_name(service, "visby", "gray-v", "one"), origin.time
    noted = {SERVICE: service}
    return Delegation(
        name, 1, "away", "visby", "gray-v", "https://visby", new_permit(), NOBODY, noted, when, when, named="one"
    )


@pytest.mark.parametrize("says", [AwayJob("Succeeded"), AwayJob("Failed"), None])
async def test_what_a_member_says_of_a_job_of_its_own_is_not_about_ours(origin: Origin, says: AwayJob | None) -> None:
    await origin.give_away()
    await origin.look()
    assert await origin.delegations.adopt(theirs(origin))
    origin.says = says
    await origin.follower.follow(theirs(origin))
    found = await origin.jobs.get("one")
    assert found is not None
    assert found.status is Status.RUNNING
    assert [one.job for one in await origin.delegations.active()] == ["one"]
    assert origin.ended_keys == [f"away {theirs(origin).job} 1"]


async def test_keys_of_a_replicas_own_job_end_too(origin: Origin) -> None:
    fresh = theirs(origin)
    assert await origin.delegations.adopt(fresh)
    for after in (1, 200, 105, 20):  # nobody here knows whether it has files, so it has the time for them
        origin.time += after
        for one in await origin.delegations.active():
            await origin.follower.follow(one)
    assert (origin.ended_keys, origin.stopped) == ([f"away {fresh.job} 1"], ["one"])
    assert await origin.delegations.active() == []


async def test_one_whose_receipt_there_is_over_ends_once_and_its_member_is_not_called_again(origin: Origin) -> None:
    fresh = theirs(origin)
    assert await origin.delegations.adopt(fresh)
    await origin.follower.follow(fresh)
    origin.says = PeerRefused("visby answered 500", status=500)
    origin.time += LIMITS.keep_receipts  # the machine slept
    await origin.follower.follow(fresh)
    assert (origin.ended_keys, origin.stopped) == ([f"away {fresh.job} 1"], [])
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
    fresh = theirs(origin, "gone")
    assert await origin.delegations.adopt(fresh)
    await origin.follower.follow(fresh)
    assert (origin.ended_keys, origin.stopped) == ([f"away {fresh.job} 1"], ["one"])
    assert await origin.delegations.active() == []


async def lend_onward(origin: Origin) -> str:
    """To the member that has the job, for whoever it hands the job on to."""
    name = adopted_name("gray", "visby", "gray-v", "on-x")
    said = {SERVICE: "gray", OF: "one", MAIN: ["one", 1]}
    fresh = Delegation(
        name, 1, "away", "visby", "gray-v", "", new_permit(), NOBODY, said, origin.time, origin.time, named="on-x"
    )
    assert await origin.delegations.adopt(fresh)
    return name


@pytest.mark.parametrize("how", ["ended", "taken back", "forgotten"])
async def test_keys_to_hand_a_job_on_with_end_with_it_whatever_the_member_says(origin: Origin, how: str) -> None:
    await origin.give_away()
    name = await lend_onward(origin)
    await origin.look()
    assert await origin.delegations.get(name) is not None
    if how == "ended":
        assert await origin.jobs.end("one", Outcome(True, 0, ""), origin.time)
    elif how == "taken back":
        assert await origin.delegations.take_back("one", 1, {})
    else:
        await origin.delegations.finished("one", 1, origin.time)
        await origin.jobs.remove(["one"])
    row = await origin.delegations.get(name)
    assert row is not None
    await origin.follower.follow(row)  # it says: Running
    assert await origin.delegations.get(name) is None
    assert origin.ended_keys[-1] == f"away {name} 1"


@pytest.mark.parametrize("says", [None, PeerRefused("no", status=403), Temporary("away")], ids=["none", "no", "away"])
async def test_who_lost_a_job_is_remembered_and_comes_after_others(origin: Origin, says: HansaError | None) -> None:
    await origin.give_away(**{DROPPED: {"visby/gray-v": 1, "riga/gray-r": 1}})
    origin.says = says
    await origin.look(after=20)
    found = await origin.delegations.get("one")
    assert found is not None
    assert (found.phase, found.dropped) == ("back", {"visby/gray-v": 2, "riga/gray-r": 1})
