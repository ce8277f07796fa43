"""Is a job that was accepted without anybody's hearing of it started?"""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hansa.kernel.clock import SystemClock
from hansa.services import Backlog, Limits, Service, Status, submission
from services.test_dispatch import Host, dispatching, status_of

LIMITS = Limits(time_limit=100, run_limit=1, attempts=1, queue_limit=100, keep=1, page_size=1)
RECORD: Any = SimpleNamespace(service=Service(name="gray", owner="alice", image="debian", script="true"), phase="ready")


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not true():
            await asyncio.sleep(0)


@pytest.mark.parametrize("cancelled", ["before it was begun", "while it was written"])
async def test_one_whose_acceptance_was_cancelled_does_not_wait_for_a_restart(tmp_path: Path, cancelled: str) -> None:
    host = Host()
    async with dispatching(tmp_path, host) as (dispatcher, jobs, database, _):
        names: list[str] = []
        begun, go_on = threading.Event(), threading.Event()

        def slowly(_: Any) -> None:
            begun.set()
            assert go_on.wait(30)

        async def accept_upload(job: Any, *version: Any) -> bool:
            names.append(job.name)
            return await jobs.accept_upload(job, *version)

        room: Any = SimpleNamespace(
            jobs=SimpleNamespace(accept_upload=accept_upload),
            dispatcher=dispatcher,
            backlog=Backlog(),
            limits=LIMITS,
            clock=SystemClock(),
        )
        blocker = asyncio.create_task(database.write(slowly))
        if cancelled == "before it was begun":
            await until(begun.is_set)
        accepting = asyncio.create_task(
            submission.submit_upload(room, RECORD, bucket="in", key="a", etag="x", modified=1, size=1)
        )
        await until(lambda: names)
        await until(begun.is_set)  # both in one batch, if the job was there in time
        accepting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await accepting
        for _ in range(20):  # so that whoever only reads has done so
            await database.read(lambda connection: None)
        go_on.set()
        await blocker
        await status_of(jobs, names[0], Status.SUCCEEDED)
        assert host.ran == names
