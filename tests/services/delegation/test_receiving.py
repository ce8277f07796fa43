"""What does an origin hear of a job that changes in the moment it asks?"""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hansa.services import Job, Outcome, Room, Status
from hansa.services.delegation import Receipt, receiving
from hansa.store import Database, JobStore, make_engine, schema, sqlite_url

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


@pytest.fixture
async def jobs(tmp_path: Path) -> AsyncIterator[JobStore]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    yield JobStore(database)
    await database.close()


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
        dispatcher=SimpleNamespace(offer=lambda waiting: offered.append(waiting.name)),
    )
    await jobs.accept(Job("one", "gray", "alice", Status.PENDING, 0.0, 100, 1024, b"body"))
    await jobs.end("one", outcome, 1.0)
    before = await jobs.get("one")
    assert before is not None
    assert await receiving.take_up_again(cast(Room, room), before, b"body", anew=anew) is again
    assert offered == (["one"] if again else [])
