"""Starts waiting jobs when there is room, follows them to their end, and writes down how they ended.

One task of its own for each running job, all owned by the dispatcher. Nothing is decided here: `queue.py` says
which job is next, the engine runs it, the store remembers it.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import structlog

from hansa.kernel import quantities
from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError, Temporary
from hansa.resources import Admission, Needs
from hansa.services.errors import NoRoom
from hansa.services.job import Job, Outcome, Status
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
        clock: Clock,
        most_attempts: int,
        on_change: Callable[[Job, Outcome | None], None] = lambda job, outcome: None,
        delegable: Callable[[str], bool] = lambda service: False,
        on_stuck: Callable[[], None] = lambda: None,
        permitted: Callable[[Waiting], bool] = lambda waiting: True,
        on_turned_away: Callable[[str], None] = lambda name: None,
        disk_of: Callable[[str], int] = lambda service: 0,
        publish_wait: float | None = None,
    ) -> None:
        """`publish_wait`: a run whose script has ended waits so many seconds for the right to publish before it gives
        its cpu and memory to others; None where the engine cannot do without them meanwhile."""
        self._jobs = jobs
        self._host = host
        self._admission = admission
        self._order_for = order_for
        self._clock = clock
        self._most_attempts = most_attempts
        self._on_change = on_change
        self._delegable = delegable
        self._on_stuck = on_stuck
        self._permitted = permitted
        self._on_turned_away = on_turned_away
        self._disk_of = disk_of
        self._publish_wait = publish_wait
        self.turned_away: set[str] = set()  # what our engine had no room for: members are asked before it is again
        self._queue = Queue()
        self._hopeless: list[Waiting] = []  # too large for this cluster; they need not wait to hear it
        self._look_again = False
        self._interrupted = False
        self._wake = asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._again: dict[str, Waiting] = {}  # turned away, and to wait again as soon as their task is over
        self._ending: dict[str, Ended] = {}
        admission.on_release(self._wake.set)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return len(self._running)

    def never_fits(self, needs: Needs) -> str:
        """Why something of this size can never run here, or ""."""
        return self._admission.ledger.could_ever_hold(needs)

    def beyond_quota(self, needs: Needs) -> str:
        """Why something of this size is more than its owner may ever have, or ""."""
        return self._admission.shares.never(needs)

    def _needs(self, waiting: Waiting) -> Needs:
        if waiting.ended:
            return Needs(0, 0, 0, waiting.owner)  # whatever fits here by now: its script does not run again
        return Needs(waiting.cpu, waiting.memory, self._disk_of(waiting.service), waiting.owner)

    def _never(self, waiting: Waiting) -> str:
        return self._admission.ledger.could_ever_hold(self._needs(waiting))

    def why_waiting(self, name: str) -> str:
        """Why a job has not begun yet, in words; "" if it does not wait here."""
        waiting = self._queue.get(name)
        if waiting is None:
            return ""
        if self._queue.is_paused(name):
            return "it is being offered to the members of its federation"
        if never := self._never(waiting):
            return f"it can never run here, and waits for a member to take it: {never}"
        if not self._permitted(waiting):
            return "the members of its federation are asked first"
        if over := self._admission.over_share(self._needs(waiting)):
            return over
        before = self._queue.ahead(name)
        line = f"; {before} {'job waits' if before == 1 else 'jobs wait'} before it" if before else ""
        needs, free = self._needs(waiting), self._admission.ledger.free
        if needs.fits_into(free):
            return f"it waits for its turn{line}"
        if needs.disk > free.disk:
            asked, there = quantities.show_size(needs.disk), quantities.show_size(max(0, free.disk))
            return f"it waits for room: it needs {asked} of disk, {there} are free{line}"
        return (
            f"it waits for room: it needs {waiting.cpu}m cpu and {quantities.show_size(waiting.memory)} of memory, "
            f"{max(0, free.cpu)}m and {quantities.show_size(max(0, free.memory))} are free{line}"
        )

    def pending(self) -> list[Waiting]:
        """What waits here, in order, without what is being offered elsewhere."""
        return self._queue.snapshot()

    def lined_up(self) -> list[Waiting]:
        """What waits here, in order, with what is being offered elsewhere."""
        return self._queue.everything()

    def gone(self, name: str) -> None:
        """A member has it now."""
        self._queue.remove(name)

    @contextmanager
    def held_back(self, name: str) -> Iterator[bool]:
        """While a job is offered elsewhere it does not start here, and keeps its place. False: it is not waiting."""
        if not self._queue.pause(name):
            yield False
            return
        self._admission.withdraw(name)
        try:
            yield True
        finally:
            self._queue.resume(name)
            self._wake.set()

    def is_held_back(self, name: str) -> bool:
        return self._queue.is_paused(name)

    def fits_now(self, needs: Needs) -> bool:
        """Into what is free here, and into what is left for its owner."""
        return needs.fits_into(self._admission.ledger.free) and not self._admission.over_share(needs)

    async def recover(self) -> None:
        """After a start: what ran when we died waits again, in its old place."""
        for name in await self._jobs.requeue_running(self._most_attempts, self._clock.now()):
            await self._discard(name)
        await self._read_waiting(await self._host.ended())

    async def _read_waiting(self, ended: frozenset[str] = frozenset()) -> None:
        for waiting in await self._jobs.waiting():
            if waiting.name not in self._running:
                self.offer(replace(waiting, ended=waiting.name in ended))

    def offer(self, waiting: Waiting) -> None:
        """A job that was just accepted."""
        too_large = bool(self._never(waiting))
        if too_large and not self._delegable(waiting.service):
            self._hopeless.append(waiting)
        else:
            beyond = bool(self.beyond_quota(self._needs(waiting)))
            self._queue.add(waiting, elsewhere=too_large, beyond=beyond)  # a member may have the room we never have
        self._wake.set()

    def look_again(self) -> None:
        """Nobody heard whether the database took a job: what it holds is read again when it answers."""
        self._look_again = True
        self._wake.set()

    @contextmanager
    def surely(self) -> Iterator[None]:
        """While a job is made to wait here: if that fails or is cancelled it is not forgotten, wherever it was cut."""
        try:
            yield
        except BaseException:
            self.look_again()
            raise

    def wake(self) -> None:
        """Something may start that might not before."""
        self._wake.set()

    def resized(self) -> None:
        """The cluster is larger or smaller now, or somebody's quota is: all that wait take their places anew, in their
        order."""
        for waiting in self._queue.everything():
            self._queue.remove(waiting.name)
            self.offer(waiting)
        self._wake.set()

    async def work(self) -> None:
        """Until cancelled. Running jobs are ended when this ends; they are found again at the next start."""
        if self._interrupted:
            await self.recover()  # a failure of ours ended it before; nothing runs now
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    await self._wake.wait()
                    self._wake.clear()
                    if self._look_again:
                        self._look_again = False
                        await self._durably(self._read_waiting)
                    while (waiting := self._next()) is not None:
                        task = tasks.create_task(self._run(waiting), name=f"job {waiting.name}")
                        self._running[waiting.name] = task
                        task.add_done_callback(functools.partial(self._let_go, waiting.name))
                    if len(self._queue):
                        self._on_stuck()
        finally:
            self._interrupted = True

    def _next(self) -> Waiting | None:
        for waiting in self._queue.only_elsewhere():
            if not self._delegable(waiting.service) and self._queue.remove(waiting.name):
                self._hopeless.append(waiting)  # its service has no members any more
        if self._hopeless:
            return self._hopeless.pop()
        return self._queue.take(self._may_start, self._hold, lambda one: self._admission.comes_free(self._needs(one)))

    def _let_go(self, name: str, _task: asyncio.Task[None]) -> None:
        """Here and not in the task: one that is cancelled before its first step never runs a line of its own."""
        self._running.pop(name, None)
        self._admission.release(name)
        self._admission.release(_outputs_of(name))
        again = self._again.pop(name, None)
        if again is not None:
            self._on_turned_away(name)
            self.offer(again)

    def _may_start(self, waiting: Waiting) -> bool:
        return self._permitted(waiting) and not self._admission.lacks_share(self._needs(waiting))

    def _hold(self, waiting: Waiting) -> bool:
        return self._admission.try_hold(waiting.name, self._needs(waiting))

    async def _run(self, waiting: Waiting) -> None:
        name = waiting.name
        try:
            never = self._never(waiting)
            if never:
                await self._write_end(name, Outcome(False, None, f"it can never run here: {never}"))
                return
            job = await self._begin(name)
            if job is None:
                return  # deleted, or ended, while it waited
            self.turned_away.discard(name)
            self._on_change(job, None)
            outcome = await self._outcome(job)
            await self._write_end(name, outcome)
            self._on_change(job, outcome)
            await self._discard(name)
        except NoRoom as full:
            await self._turn_away(waiting, full.message)
        except asyncio.CancelledError:
            ended = self._ending.pop(name, None)
            if ended is None:
                raise  # the manager stops; the job waits again after the next start
            await self._write_end(name, Outcome(False, None, ended.reason))
            await self._discard(name)
        except Exception as error:  # one job's trouble must not end the others
            _log.exception("the job could not be followed", job=name)
            await self._write_end(name, Outcome(False, None, f"the manager failed: {type(error).__name__}"))

    async def _discard(self, name: str) -> None:
        """What cannot go now goes with the job's record: nobody's following ends because of it."""
        try:
            await self._host.discard(name)
        except Exception as error:  # a store that is away, a disk that is ill
            _log.warning("a run could not be cleared away yet", job=name, error=str(error) or type(error).__name__)

    async def _turn_away(self, waiting: Waiting, reason: str) -> None:
        """It waits again, to be offered to members first."""
        if await self._durably(lambda: self._jobs.wait_again(waiting.name, reason)):
            self.turned_away.add(waiting.name)
            self._again[waiting.name] = waiting

    async def _begin(self, name: str) -> Job | None:
        unsure = False
        while True:
            try:
                job = await self._jobs.begin(name, self._clock.now())
                if job is None and unsure:  # an earlier try may have come through, and only its answer got lost
                    job = await self._jobs.get(name)
                    return job if job is not None and job.status is Status.RUNNING else None
                return job
            except Temporary as error:
                unsure = True
                await self._wait_for_database(error)

    async def _outcome(self, job: Job) -> Outcome:
        try:
            order = self._order_for(job)
            if order is None:
                return Outcome(False, None, "its service is gone")
            if order.may_publish is not None and self._publish_wait is not None:
                order = replace(order, may_publish=functools.partial(self._may_publish, job, order, self._publish_wait))
            return await self._host.run(replace(order, explain=functools.partial(self._explain, job.name)))
        except NoRoom:
            raise
        except HansaError as error:
            return Outcome(False, None, error.message)
        except Exception as error:  # a defect of an engine must not take the other jobs down
            _log.exception("the engine failed", job=job.name)
            return Outcome(False, None, f"the engine failed: {type(error).__name__}")

    async def _may_publish(self, job: Job, order: RunOrder, at_once: float) -> bool:
        """An origin that does not say it at once holds up nobody here: until then the job has its disk alone, and waits
        for room again before its outputs go."""
        assert order.may_publish is not None
        asked = asyncio.ensure_future(order.may_publish())
        try:
            await asyncio.wait([asked], timeout=at_once)
            if asked.done():
                return asked.result()
            needs = self._needs(Waiting(job.name, job.service, job.owner, job.cpu, job.memory))
            self._admission.keep(job.name, replace(needs, cpu=0, memory=0))
            granted = await asked
            if granted:
                await self._wait_for_room(job.name, replace(needs, disk=0), order.moving)
            return granted
        finally:
            asked.cancel()

    async def _wait_for_room(self, name: str, needs: Needs, within: float) -> None:
        """For its outputs. If there is none within so many seconds, or can be none any more, they go all the same:
        their origin waits for them, and would fail the job at last."""
        why = self.never_fits(needs) or self.beyond_quota(needs)
        if not why and not await self._admission.wait_for(_outputs_of(name), needs, within):
            why = f"there was none for {within:.0f} s"
        if why:
            _log.warning("outputs are stored without room of their own", job=name, why=why)

    async def _explain(self, name: str, reason: str) -> None:
        """Words alone: a database that is away misses them."""
        with suppress(Temporary):
            await self._jobs.explain_start(name, reason)

    async def _write_end(self, name: str, outcome: Outcome) -> None:
        await self._durably(lambda: self._jobs.end(name, outcome, self._clock.now()))

    async def _durably(self, write: Callable[[], Awaitable[T]]) -> T:
        """Tries until the database takes it: an end that is not written down would leave the job "Running"."""
        while True:
            try:
                return await write()
            except Temporary as error:
                await self._wait_for_database(error)

    async def _wait_for_database(self, error: Temporary) -> None:
        _log.warning("the database is away; trying again", error=error.message)
        await asyncio.sleep(_STORE_PATIENCE)

    async def end(self, names: list[str], reason: str) -> None:
        """Ends these jobs, waiting or running, and returns when nothing of them runs."""
        tasks = []
        for name in names:
            if self._queue.remove(name):
                self._admission.withdraw(name)
                self._wake.set()  # it may have been in the way of others
                await self._end_waiting(name, reason)
            elif (task := self._running.get(name)) is not None:
                self._ending[name] = Ended(reason)
                task.cancel()
                tasks.append(task)
        if tasks:
            await asyncio.wait(tasks, timeout=30)
        for name in names:
            if self._ending.pop(name, None) is not None and name not in self._running:
                await self._end_waiting(name, reason)  # its task was cancelled before its first step

    async def _end_waiting(self, name: str, reason: str) -> None:
        try:
            await self._jobs.end(name, Outcome(False, None, reason), self._clock.now())
        except Temporary:
            self.look_again()  # not ended then: it goes on waiting
            raise


def _outputs_of(job: str) -> str:
    """Under which the room is held that a run gave away while it waited, and took again. No job has such a name."""
    return f"outputs of {job}"
