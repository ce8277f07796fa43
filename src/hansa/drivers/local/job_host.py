"""How does one job run on this machine? Stage in, run the script in a sandbox, stage out; once.

The `JobHost` port. How far a run came is on disk (`workdir.State`): called again after a crash, a script
that had ended is not run again, only what is left to do is done. Unlike OSCAR's supervisor, a script that
fails makes its job fail, and then its outputs are not stored; the log says so.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from hansa import services
from hansa.drivers.local import endings
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.job_logs import LogBook, LogWriter
from hansa.drivers.local.launch import Exit, SandboxLost
from hansa.drivers.local.runtime import Process, follow, put_down
from hansa.drivers.local.staging import Staging
from hansa.drivers.local.workdir import State, Workdir
from hansa.drivers.runs import plans
from hansa.kernel import errors, names

_log = structlog.get_logger("hansa.jobs")
_MOST_LOSSES = 3
_OPEN_AGAIN = 2.0  # seconds


@dataclass(slots=True)
class _Turn:
    """Whoever asks for a job that runs already waits for its end."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    comers: int = 0


class LocalJobHost:
    """Jobs in sandboxes of this machine. Room for them is the dispatcher's business."""

    def __init__(self, engine: Engine, logs: LogBook) -> None:
        self._engine = engine
        self._logs = logs
        self._turns: dict[str, _Turn] = {}

    async def run(self, order: services.RunOrder) -> services.Outcome:
        names.job(order.name)  # it becomes the name of a folder
        turn = self._turns.setdefault(order.name, _Turn())
        turn.comers += 1
        try:
            async with turn.lock:
                return await self._run(order)
        finally:
            turn.comers -= 1
            if not turn.comers:
                del self._turns[order.name]

    async def ended(self) -> frozenset[str]:
        return frozenset(await asyncio.to_thread(self._engine.ended))

    async def discard(self, name: str) -> None:
        names.job(name)
        await asyncio.to_thread(self._engine.workdir(name).remove)

    async def _run(self, order: services.RunOrder) -> services.Outcome:
        workdir = self._engine.workdir(order.name)
        state = await asyncio.to_thread(lambda: workdir.state)
        if state is not None and state.staged:
            return state.outcome
        if state is None and workdir.is_old:
            await asyncio.to_thread(workdir.remove)
            workdir = self._engine.workdir(order.name)
        log = self._logs.open(order.name, order.service.log_level, owner=order.payer)
        try:
            staging = self._engine.staging(order, workdir, log.say)
            if state is None:
                outcome = await self._execute(order, workdir, staging, log)
                if outcome.succeeded and plans.carries(order):
                    outcome = await _written_out(outcome, workdir, log)
                state = State(outcome, staged=not plans.carries(order) or not outcome.succeeded)
                log.flush()  # from here on the script is not run again, so its lines must not be lost
                await asyncio.to_thread(workdir.keep, state)
            else:
                log.say("INFO", "the script had ended before the manager was restarted; going on")
                await _reopened(order, workdir, log)
            if not state.staged:
                state = State(await self._deliver(order, state.outcome, staging, log), staged=True)
                await asyncio.to_thread(workdir.keep, state)
            return state.outcome
        finally:
            log.close()

    async def _execute(
        self, order: services.RunOrder, workdir: Workdir, staging: Staging, log: LogWriter
    ) -> services.Outcome:
        hold = plans.brings(order)
        launch = self._engine.launch(order, workdir, id=order.name, seconds=order.seconds, hold=hold)
        exit = Exit(None, "lost", 0.0, None)
        for _ in range(_MOST_LOSSES):
            try:
                async with staging.bringing() as bring:
                    await self._engine.prepare(order, workdir, self._engine.call_files(order, workdir))
                    process = await self._engine.start(launch, order, workdir)
                    if launch.hold:
                        await _brought(process, bring)
            except SandboxLost:
                continue
            except (errors.HansaError, OSError) as error:
                log.say("ERROR", f"the script was not started: {error}")
                return services.Outcome(False, None, f"the script was not started: {error}")
            exit = await follow(process, log.feed)
            if exit.reason != "lost":
                break
            log.say("WARNING", "the sandbox died; the script starts over")
        reason = endings.in_words(exit, launch, full=workdir.is_full)
        await _report(exit, reason, workdir, log)
        return services.Outcome(endings.succeeded(exit), exit.code, reason, exit.cpu_seconds or 0.0)

    async def _deliver(
        self, order: services.RunOrder, outcome: services.Outcome, staging: Staging, log: LogWriter
    ) -> services.Outcome:
        if order.may_publish is not None and not await order.may_publish():
            log.say("WARNING", "another run of this job was given precedence; these outputs are thrown away")
            return services.Outcome(False, outcome.exit_code, services.delegation.SUPERSEDED, outcome.cpu_seconds)
        try:
            count = await staging.carry()
        except errors.HansaError as error:
            log.say("ERROR", f"an output could not be stored: {error}")
            reason = f"an output could not be stored: {error}"
            return services.Outcome(False, outcome.exit_code, reason, outcome.cpu_seconds)
        log.say("DEBUG", f"{count} outputs stored")
        return outcome


async def _brought(process: Process, bring: Callable[[], Awaitable[None]]) -> None:
    """Files come while the sandbox is being built; then the script is let go."""
    try:
        await bring()
        await process.release()
    except BaseException:
        await put_down(process)
        raise


async def _reopened(order: services.RunOrder, workdir: Workdir, log: LogWriter) -> None:
    """The disk of a run that ended before this manager began. What keeps it shut is the machine's trouble: the outputs
    wait, for as long as the job is wanted."""
    said = ""
    while True:
        try:
            await asyncio.to_thread(lambda: workdir.reach)
            return
        except OSError as error:
            why = f"its outputs wait, for the disk they are on cannot be opened: {error.strerror or error}"
        if why != said:
            said = why
            log.say("WARNING", why)
            _log.warning("outputs of a run wait for its disk (`hansa doctor` tells more)", job=order.name, reason=why)
            if order.explain is not None:
                await order.explain(why)
        await asyncio.sleep(_OPEN_AGAIN)


async def _written_out(outcome: services.Outcome, workdir: Workdir, log: LogWriter) -> services.Outcome:
    """Outputs with holes are no outputs: the disk below a run's own may have been full, which no script is told."""
    try:
        await asyncio.to_thread(workdir.write_out)
    except OSError as error:
        reason = f"what it wrote was lost: {error.strerror or error} on the disk of this machine"
        log.say("ERROR", reason)
        return services.Outcome(False, outcome.exit_code, reason, outcome.cpu_seconds)
    return outcome


async def _report(exit: Exit, reason: str, workdir: Workdir, log: LogWriter) -> None:
    if not reason:
        log.say("INFO", f"the script ended well after {exit.seconds:.2f} s")
        return
    log.say("ERROR", f"the script failed after {exit.seconds:.2f} s: {reason}")
    if await asyncio.to_thread(lambda: workdir.has_output):
        log.say("WARNING", "outputs of a failed script are not stored")
