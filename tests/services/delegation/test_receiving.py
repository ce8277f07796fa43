"""What does an origin hear of a job that changes in the moment it asks?"""

from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hansa.identity import Vault
from hansa.kernel.errors import HansaError
from hansa.services import Backlog, Job, Outcome, PeerRefused, PeerUnreachable, Room, Status
from hansa.services.delegation import NOBODY, SUPERSEDED, Delegation, Receipt, receiving
from hansa.store import Database, JobStore, ReceiptStore, make_engine, schema, sqlite_url

PERMIT = "ab" * 32


async def test_a_job_that_is_given_back_while_its_origin_asks_is_not_taken_up_again() -> None:
    """It was read as waiting, and had been given back before anything else was asked."""
    taken_up: list[str] = []

    async def get(name: str) -> Job:
        return Job(name, "gray", "alice", Status.PENDING, 0.0, 100, 1024, b"")

    async def again(name: str, *_: object) -> bool:
        taken_up.append(name)
        return True

    receipt = Receipt("one", "gray", "lubeck", "https://lubeck", ("lubeck",), PERMIT, {}, 0.0)
    room = SimpleNamespace(
        borrowed={},
        receipts=SimpleNamespace(get=lambda _: receipt),
        jobs=SimpleNamespace(get=get, again=again),
    )
    told: Any = await receiving.state(cast(Room, room), "one", PERMIT)
    assert told.status == "Pending"
    assert taken_up == []


@pytest.mark.parametrize("attempt", [1, 3])
async def test_a_run_that_lost_its_right_again_and_again_is_not_taken_up_for_ever(attempt: int) -> None:
    """Its origin asks for it and refuses what it made, for whatever reason."""
    lost = Job("one", "gray", "alice", Status.FAILED, 0.0, 100, 1024, b"", attempt=attempt, reason=SUPERSEDED)
    receipt = Receipt("one", "gray", "lubeck", "https://lubeck", ("lubeck",), PERMIT, {}, 0.0)
    offered: list[str] = []

    async def answer(value: object) -> Any:
        return value

    room: Any = SimpleNamespace(
        borrowed={},
        limits=SimpleNamespace(attempts=3),
        receipts=SimpleNamespace(get=lambda _: receipt),
        jobs=SimpleNamespace(get=lambda _: answer(lost), again=lambda *_: answer(True)),
        backlog=SimpleNamespace(add=lambda *_: None),
        job_host=SimpleNamespace(discard=lambda _: answer(None)),
        dispatcher=SimpleNamespace(surely=nullcontext, offer=lambda waiting: offered.append(waiting.name)),
    )
    if attempt < 3:
        told = await receiving.state(room, "one", PERMIT)
        assert (told.status, offered) == ("Pending", ["one"])
    else:
        with pytest.raises(receiving.NoSuchDelegation):
            await receiving.state(room, "one", PERMIT)
        assert offered == []


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    yield database
    await database.close()


@pytest.fixture
def jobs(database: Database) -> JobStore:
    return JobStore(database)


async def test_an_origin_that_never_asks_how_its_jobs_ended_hands_over_no_more(database: Database) -> None:
    receipts, backlog = ReceiptStore(database, Vault([Vault.new_key()])), Backlog()
    room: Any = SimpleNamespace(
        cluster_id="visby", limits=SimpleNamespace(unheard_ends=2), receipts=receipts, backlog=backlog
    )
    for name, origin in (("a", "lubeck"), ("b", "lubeck"), ("c", "riga")):
        job = Job(name, "gray", "alice", Status.PENDING, 0.0, 100, 1024, b"")
        assert await receipts.accept(Receipt(name, "gray", origin, "https://x", (origin,), PERMIT, {}, 0.0), job)
        backlog.add(name, "alice", 0)
    backlog.leave("a")
    receiving.require_heard(room, "lubeck")
    backlog.leave("b")
    receiving.require_heard(room, "riga")
    with pytest.raises(receiving.UnheardEnds):
        receiving.require_heard(room, "lubeck")
    await receipts.remove("a")  # it asked, and heard
    receiving.require_heard(room, "lubeck")


@pytest.mark.parametrize(
    ("outcome", "anew", "again"),
    [
        (Outcome(False, None, "the script was not started: denied"), True, True),
        (Outcome(False, None, "the script was not started: denied"), False, False),  # the same parcel twice
        (Outcome(False, 1, "exit code 1"), True, False),  # its end is told instead
        (Outcome(True, 0, ""), True, False),
        (Outcome(False, 0, "superseded by another run"), False, True),
    ],
)
async def test_what_failed_without_an_end_of_its_script_begins_anew(
    jobs: JobStore, outcome: Outcome, anew: bool, again: bool
) -> None:
    """Its keys were ended when its origin took it back; it is given to us with others."""
    offered: list[str] = []

    async def discard(_name: str) -> None:
        return

    room = SimpleNamespace(
        jobs=jobs,
        backlog=SimpleNamespace(add=lambda *_: None),
        job_host=SimpleNamespace(discard=discard),
        dispatcher=SimpleNamespace(surely=nullcontext, offer=lambda waiting: offered.append(waiting.name)),
    )
    await jobs.accept(Job("one", "gray", "alice", Status.PENDING, 0.0, 100, 1024, b"body"))
    await jobs.end("one", outcome, 1.0)
    before = await jobs.get("one")
    assert before is not None
    assert await receiving.take_up_again(cast(Room, room), before, b"body", anew=anew) is again
    assert offered == (["one"] if again else [])


class Mute:
    """A room whose job came from an origin that never says whether its outputs may be stored; each question takes ten
    seconds."""

    def __init__(self, error: HansaError) -> None:
        self.time, self.asked = 1000.0, 0
        receipt = Receipt("one", "gray", "lubeck", "https://lubeck", ("lubeck",), PERMIT, {}, 0.0)
        handed_on = Delegation("one", 1, "away", "riga", "gray-r", "https://riga", PERMIT, NOBODY, {}, 0.0)

        async def may_publish(*_: object) -> bool:
            self.time += 10
            self.asked += 1
            raise error

        async def granted(*_: object) -> bool:
            return True

        async def delegation(_job: str) -> Delegation:
            return handed_on

        async def no_job(_job: str) -> None:
            return None

        async def nothing(_name: str) -> list[Delegation]:
            return []

        room = SimpleNamespace(
            clock=SimpleNamespace(now=lambda: self.time),
            limits=SimpleNamespace(keep_receipts=15.0),
            receipts=SimpleNamespace(get=lambda _: receipt),
            records=SimpleNamespace(get=lambda _: None),
            delegations=SimpleNamespace(get=delegation, named=nothing, may_publish=granted),
            jobs=SimpleNamespace(get=no_job),
            peers=SimpleNamespace(find=lambda *_: SimpleNamespace(may_publish=may_publish)),
        )
        self.room = cast(Room, room)


SILENCE = [PeerUnreachable("no answer"), PeerRefused("later", status=503)]


@pytest.mark.parametrize("error", SILENCE)
async def test_a_run_does_not_wait_for_its_origins_word_for_ever(error: HansaError) -> None:
    mute = Mute(error)
    ask = receiving.gate(mute.room, Job("one", "gray", "alice", Status.RUNNING, 0.0, 100, 1024, b""))
    assert ask is not None
    with pytest.raises(PeerUnreachable, match="lubeck did not say"):
        await ask()
    assert mute.asked == 2


@pytest.mark.parametrize("error", SILENCE)
async def test_who_asks_through_us_is_told_at_once_to_ask_again(error: HansaError) -> None:
    """Not that it lost its right, and not after so long that its next question comes before."""
    mute = Mute(error)
    with pytest.raises(PeerUnreachable):
        await receiving.publish(mute.room, "one", PERMIT)
    assert mute.asked == 1
