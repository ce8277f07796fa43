"""A job is accepted once, begun once, ended once; uploads become one job each."""

import asyncio
import time
from typing import Any

import pytest

from hansa.kernel.errors import Invalid
from hansa.services import Invocation, Job, Outcome, Status, delegation
from hansa.store import Database, JobStore, UploadLedger


def job(name: str, **changes: Any) -> Job:
    base: dict[str, Any] = {
        "name": name, "service": "gray", "owner": "alice", "status": Status.PENDING, "created": 100.0, "cpu": 200,
        "memory": 1 << 20, "event": b"\x00body\xff",
    }  # fmt: skip
    return Job(**{**base, **changes})


@pytest.fixture
def jobs(database: Database) -> JobStore:
    return JobStore(database)


async def test_the_same_name_twice_is_one_job(jobs: JobStore) -> None:
    assert await jobs.accept(job("a"))
    assert not await jobs.accept(job("a", event=b"other"))
    kept = await jobs.get("a")
    assert kept is not None
    assert kept.event == b"\x00body\xff"


async def test_a_burst_is_accepted_completely_and_in_order(jobs: JobStore) -> None:
    invocation = Invocation(1.0, "async", "gray", "alice", 201, 0.0, "127.0.0.1", "POST", "/job/gray")
    accepted = await asyncio.gather(*(jobs.accept(job(f"j{n:03}"), invocation) for n in range(300)))
    assert all(accepted)
    assert [one.name for one in await jobs.waiting()] == [f"j{n:03}" for n in range(300)]


async def test_begin_and_end_happen_once(jobs: JobStore) -> None:
    await jobs.accept(job("a"))
    begun = await jobs.begin("a", 101.0)
    assert begun is not None
    assert (begun.attempt, begun.status, begun.event) == (1, Status.RUNNING, b"\x00body\xff")
    assert await jobs.begin("a", 102.0) is None
    assert await jobs.end("a", Outcome(True, 0, "", 1.5), 103.0)
    assert not await jobs.end("a", Outcome(False, 1, "late"), 104.0)
    ended = await jobs.get("a")
    assert ended is not None
    assert (ended.status, ended.exit_code, ended.finished, ended.cpu_seconds) == (Status.SUCCEEDED, 0, 103.0, 1.5)


async def test_why_one_that_was_begun_has_to_wait_is_known_until_it_ends(jobs: JobStore) -> None:
    await jobs.accept(job("a"))
    await jobs.explain_start("a", "it is not begun")
    begun = await jobs.begin("a", 1.0)
    assert begun is not None
    assert begun.reason == ""
    await jobs.explain_start("a", "the quota is used up")
    waits = await jobs.get("a")
    assert waits is not None
    assert (waits.status, waits.reason) == (Status.RUNNING, "the quota is used up")
    await jobs.end("a", Outcome(True, 0, ""), 2.0)
    await jobs.explain_start("a", "too late")
    ended = await jobs.get("a")
    assert ended is not None
    assert ended.reason == ""


async def test_after_a_restart_running_jobs_wait_again_in_their_old_place_until_tried_too_often(jobs: JobStore) -> None:
    for name in ("a", "b", "c"):
        await jobs.accept(job(name))
    await jobs.begin("a", 1.0)
    assert await jobs.requeue_running(2, 2.0) == []
    assert [one.name for one in await jobs.waiting()] == ["a", "b", "c"]
    await jobs.begin("a", 3.0)
    assert await jobs.requeue_running(2, 4.0) == ["a"]
    failed = await jobs.get("a")
    assert failed is not None
    assert failed.status is Status.FAILED
    assert failed.reason
    assert [one.name for one in await jobs.waiting()] == ["b", "c"]


async def test_pages_newest_first_by_owner_and_stable_while_new_jobs_come(jobs: JobStore) -> None:
    for n in range(7):
        await jobs.accept(job(f"j{n}", owner="alice" if n % 2 else "bob"))
    first = await jobs.page("gray", None, "", 3)
    await jobs.accept(job("new"))
    second = await jobs.page("gray", None, first.next_page, 3)
    third = await jobs.page("gray", None, second.next_page, 3)
    seen = [one.name for page in (first, second, third) for one in page.jobs]
    assert seen == [f"j{n}" for n in reversed(range(7))]
    assert (first.remaining, second.remaining, third.next_page) == (4, 1, "")
    mine = await jobs.page("gray", "alice", "", 50)
    assert [one.name for one in mine.jobs] == ["new", "j5", "j3", "j1"]


async def test_exactly_one_page_has_no_next(jobs: JobStore) -> None:
    for n in range(3):
        await jobs.accept(job(f"j{n}"))
    assert (await jobs.page("gray", None, "", 3)).next_page == ""


@pytest.mark.parametrize("page", ["x", "-1", "1;drop table jobs", "9" * 40, "١"])
async def test_a_page_we_did_not_give_is_refused(jobs: JobStore, page: str) -> None:
    with pytest.raises(Invalid):
        await jobs.page("gray", None, page, 3)


async def test_an_object_version_becomes_one_job_ever(jobs: JobStore, database: Database) -> None:
    ledger = UploadLedger(database)
    assert await jobs.accept_upload(job("a"), "b", "in/x", "etag", 1)
    assert not await jobs.accept_upload(job("b"), "b", "in/x", "etag", 1)
    assert await jobs.get("b") is None
    assert await jobs.accept_upload(job("c"), "b", "in/x", "etag2", 2)
    assert await jobs.accept_upload(job("d", service="other"), "b", "in/x", "etag", 1)
    await ledger.mark_seen("gray", [("b", "in/old", "e", 1), ("b", "in/old", "e", 1)], 1.0)
    assert not await jobs.accept_upload(job("e"), "b", "in/old", "e", 1)
    assert await ledger.seen("gray", "b") == {("in/x", "etag", 1), ("in/x", "etag2", 2), ("in/old", "e", 1)}
    await ledger.forget("gray", [("b", "in/x", "etag", 1)])
    assert await jobs.accept_upload(job("f"), "b", "in/x", "etag", 1)
    await ledger.forget_service("gray")
    assert await ledger.seen("gray", "b") == set()


async def test_two_sources_telling_of_one_upload_at_once(jobs: JobStore) -> None:
    told = await asyncio.gather(*(jobs.accept_upload(job(f"j{n}"), "b", "k", "e", 1) for n in range(20)))
    assert sum(told) == 1
    assert len(await jobs.waiting()) == 1


async def test_the_cursor_moves(database: Database) -> None:
    ledger = UploadLedger(database)
    assert await ledger.cursor("uploads") is None
    await ledger.move_cursor("uploads", time.time_ns())
    await ledger.move_cursor("uploads", 2**62)
    assert await ledger.cursor("uploads") == 2**62


async def test_expired_names_counts_and_removal(jobs: JobStore) -> None:
    for n in range(3):
        await jobs.accept(job(f"j{n}"))
    await jobs.begin("j0", 1.0)
    await jobs.end("j0", Outcome(False, 3, "exit code 3"), 2.0)
    assert await jobs.expired(1.5, 10) == []
    assert await jobs.expired(3.0, 10) == ["j0"]
    assert await jobs.counts() == {Status.PENDING: 2, Status.FAILED: 1}
    assert await jobs.names("gray", None, frozenset({Status.FAILED})) == ["j0"]
    await jobs.remove(["j0", "j1", "never"])
    assert [one.name for one in (await jobs.page("gray", None, "", 9)).jobs] == ["j2"]


async def test_bodies_are_kept_while_a_job_is_open_and_no_longer(database: Database) -> None:
    ended: list[str] = []
    jobs = JobStore(database, on_end=ended.append)
    owners = {"a": "alice", "b": "alice", "c": "bob", "d": "bob"}
    for name, owner in owners.items():
        await jobs.accept(job(name, owner=owner, event=b"x" * 1000))
    await jobs.begin("b", 1.0)
    assert await jobs.open_sizes() == {name: (owner, 1000) for name, owner in owners.items()}
    await jobs.end("b", Outcome(True, 0, ""), 2.0)
    await jobs.remove(["c"])
    assert ended == ["b", "c"]
    assert await jobs.open_sizes() == {"a": ("alice", 1000), "d": ("bob", 1000)}
    over = await jobs.get("b")
    assert over is not None
    assert over.event == b""


async def test_the_body_of_a_run_that_may_start_again_stays(jobs: JobStore) -> None:
    await jobs.accept(job("a"))
    await jobs.begin("a", 1.0)
    await jobs.end("a", Outcome(False, None, delegation.SUPERSEDED), 2.0)
    assert await jobs.again("a", delegation.LOST)
    kept = await jobs.get("a")
    assert kept is not None
    assert (kept.status, kept.event) == (Status.PENDING, b"\x00body\xff")
    await jobs.end("a", Outcome(False, None, delegation.CALLED_OFF), 3.0)
    assert await jobs.again("a", delegation.LOST, b"brought along")
    kept = await jobs.get("a")
    assert kept is not None
    assert kept.event == b"brought along"
