"""Starts waiting jobs when there is room, follows them to their end, and writes down how they ended.

One task of its own for each running job, all owned by the dispatcher. Nothing is decided here: `queue.py` says
which job is next, the engine runs it, the store remembers it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError, Temporary
from hansa.resources import Admission, Needs
from hansa.services.job import Job, Outcome
from hansa.services.ports import JobHost, Jobs, RunOrder, Waiting
from hansa.services.queue import Queue

T = TypeVar("T")
_log = structlog.get_logger("hansa.jobs")
_STORE_PATIENCE = 0.5  # seconds between tries to write an end down while the database is away


@dataclass(frozen=True, slots=True)
class Ended:
    """Why a job was ended from outside."""

    reason: str


class Dispatcher:
    def __init__(
        self,
        jobs: Jobs,
        host: JobHost,
        admission: Admission,
        order_for: Callable[[Job], RunOrder | None],
        within_quota: Callable[[str, Needs, Needs], bool],
        clock: Clock,
        most_attempts: int,
        on_change: Callable[[Job, Outcome | None], None] = lambda job, outcome: None,
    ) -> None:
        self._jobs = jobs
        self._host = host
        self._admission = admission
        self._order_for = order_for
        self._within_quota = within_quota
        self._clock = clock
        self._most_attempts = most_attempts
        self._on_change = on_change
        self._queue = Queue()
        self._wake = asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._held: dict[str, Waiting] = {}  # what each running job holds, by name
        self._ending: dict[str, Ended] = {}
        admission.on_release(self._wake.set)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return len(self._running)

    def never_fits(self, cpu: int, memory: int) -> str:
        """Why something of this size can never run here, or ""."""
        return self._admission.ledger.could_ever_hold(Needs(cpu, memory))

    def used_by(self, owner: str) -> Needs:
        """What an owner's running jobs hold together."""
        mine = [held for held in self._held.values() if held.owner == owner]
        return Needs(sum(one.cpu for one in mine), sum(one.memory for one in mine))

    async def recover(self) -> None:
        """After a start: what ran when we died waits again, in its old place."""
        for name in await self._jobs.requeue_running(self._most_attempts, self._clock.now()):
            await self._host.discard(name)
        self._queue.extend(await self._jobs.waiting())
        self._wake.set()

    def offer(self, waiting: Waiting) -> None:
        """A job that was just accepted."""
        self._queue.add(waiting)
        self._wake.set()

    async def work(self) -> None:
        """Until cancelled. Running jobs are ended when this ends; they are found again at the next start."""
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    await self._wake.wait()
                    self._wake.clear()
                    while (waiting := self._queue.take(self._may_start, self._hold)) is not None:
                        task = tasks.create_task(self._run(waiting), name=f"job {waiting.name}")
                        self._running[waiting.name] = task
        finally:
            self._running.clear()

    def _may_start(self, waiting: Waiting) -> bool:
        return self._within_quota(waiting.owner, self.used_by(waiting.owner), Needs(waiting.cpu, waiting.memory))

    def _hold(self, waiting: Waiting) -> bool:
        needs = Needs(waiting.cpu, waiting.memory)
        if self._admission.ledger.could_ever_hold(needs):
            return True  # it will be ended at once, with that reason
        if not self._admission.try_hold(waiting.name, needs):
            return False
        self._held[waiting.name] = waiting
        return True

    async def _run(self, waiting: Waiting) -> None:
        name = waiting.name
        try:
            never = self._admission.ledger.could_ever_hold(Needs(waiting.cpu, waiting.memory))
            if never:
                await self._write_end(name, Outcome(False, None, f"it can never run here: {never}"))
                return
            job = await self._durably(lambda: self._jobs.begin(name, self._clock.now()))
            if job is None:
                return  # deleted, or ended, while it waited
            self._on_change(job, None)
            outcome = await self._outcome(job)
            await self._write_end(name, outcome)
            self._on_change(job, outcome)
            await self._host.discard(name)
        except asyncio.CancelledError:
            ended = self._ending.pop(name, None)
            if ended is None:
                raise  # the manager stops; the job waits again after the next start
            await self._write_end(name, Outcome(False, None, ended.reason))
            await self._host.discard(name)
        finally:
            self._running.pop(name, None)
            self._held.pop(name, None)
            self._ending.pop(name, None)
            self._admission.release(name)

    async def _outcome(self, job: Job) -> Outcome:
        order = self._order_for(job)
        if order is None:
            return Outcome(False, None, "its service is gone")
        try:
            return await self._host.run(order)
        except HansaError as error:
            return Outcome(False, None, error.message)
        except Exception as error:  # a defect of an engine must not take the other jobs down
            _log.exception("the engine failed", job=job.name)
            return Outcome(False, None, f"the engine failed: {type(error).__name__}")

    async def _write_end(self, name: str, outcome: Outcome) -> None:
        await self._durably(lambda: self._jobs.end(name, outcome, self._clock.now()))

    async def _durably(self, write: Callable[[], Awaitable[T]]) -> T:
        """Tries until the database takes it: an end that is not written down would leave the job "Running"."""
        while True:
            try:
                return await write()
            except Temporary as error:
                _log.warning("the database is away; trying again", error=error.message)
                await asyncio.sleep(_STORE_PATIENCE)

    async def end(self, names: list[str], reason: str) -> None:
        """Ends these jobs, waiting or running, and returns when nothing of them runs."""
        tasks = []
        for name in names:
            if self._queue.remove(name):
                self._admission.withdraw(name)
                await self._jobs.end(name, Outcome(False, None, reason), self._clock.now())
            elif (task := self._running.get(name)) is not None:
                self._ending[name] = Ended(reason)
                task.cancel()
                tasks.append(task)
        if tasks:
            await asyncio.wait(tasks, timeout=30)
