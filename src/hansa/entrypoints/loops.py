"""What goes on by itself while the manager runs: starting jobs, watching uploads, forgetting the old.

Each loop has a name and an owner; one that fails is logged and started again with back-off, alone.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog

from hansa.bootstrap import App
from hansa.services import Complaints, Room, creation, duty, history, replicas

_log = structlog.get_logger("hansa.loops")
_PURGE_EVERY = 60.0
_LOGS_EVERY = 3600.0
_TOKENS_EVERY = 3600.0
_REPLICAS_EVERY, _OPERATION_EVERY = 5.0, 1.0
_NOTE_EVERY = 0.5
_DRAIN_EVERY = 0.5
_FINISH_EVERY = 10.0
_BACK_OFF = (0.5, 1.0, 2.0, 5.0, 15.0)


async def supervised(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """One loop, for ever: what fails begins again, alone, later and later."""
    failures, complaints = 0, Complaints()
    while True:
        started = asyncio.get_running_loop().time()
        try:
            await work()
            return
        except Exception as error:
            complaints.tell("loop stopped", name, error, loop=name)
        lived = asyncio.get_running_loop().time() - started
        failures = 0 if lived > 60 else failures + 1
        await asyncio.sleep(_BACK_OFF[min(failures, len(_BACK_OFF) - 1)])


async def keep_replicas(room: Room, started: float, repair_every: float) -> None:
    """Operations that a crash cut short are taken back; members that differ are brought up to date. Neither waits for
    the other to succeed."""
    waited, complaints = 0.0, Complaints()
    while True:
        open_operations = await _step("taking back", replicas.recover(room, started), complaints)
        if waited >= repair_every:
            await _step("repair", replicas.repair(room), complaints)
            waited = 0.0
        pause = _OPERATION_EVERY if open_operations else min(_REPLICAS_EVERY, repair_every)
        await asyncio.sleep(pause)
        waited += pause


async def _step(name: str, work: Awaitable[int], complaints: Complaints) -> int:
    """One step of a loop: if it fails, the steps after it come all the same."""
    try:
        count = await work
    except Exception as error:
        complaints.tell("step failed", name, error, step=name)
        return 0
    complaints.passed(name)
    return count


@asynccontextmanager
async def running(app: App) -> AsyncIterator[None]:
    """All loops, until the block is left."""

    async def purge() -> None:
        while True:
            while await history.purge(app.room):
                await asyncio.sleep(0)
            await app.room.backlog.settle(app.room.jobs.open_sizes)
            await asyncio.sleep(_PURGE_EVERY)

    async def write_calls() -> None:
        while True:
            await asyncio.sleep(_NOTE_EVERY)
            await app.write_calls()

    async def finish_services() -> None:
        while True:
            await asyncio.sleep(_FINISH_EVERY)
            await creation.recover(app.room)

    async def drain() -> None:
        while True:
            await asyncio.sleep(_DRAIN_EVERY)
            if app.room.duty.draining:
                await duty.give_back(app.room)

    async def rotate_tokens() -> None:
        while True:
            for service in await app.room.keyring.rotate_due():
                _log.info("refresh token rotated", service=service)
            await asyncio.sleep(_TOKENS_EVERY)

    async def recall_logs() -> None:
        while True:
            await app.room.logs.recall(await app.room.jobs.ended())
            await asyncio.sleep(_LOGS_EVERY)

    work: dict[str, Callable[[], Awaitable[None]]] = {
        "jobs": app.room.dispatcher.work,
        "uploads": app.uploads.work,
        **({"webhook": lambda: webhook.work(app.uploads.look_now)} if (webhook := app.room.webhook) else {}),
        "purge": purge,
        "logs": recall_logs,
        "notes": write_calls,
        "store repair": app.store_repair.work,
        "full buckets": app.fullness.work,
        **({"room in the store": app.crowding.work} if app.crowding is not None else {}),
        **({"ends of loans": app.loans.work} if app.loans is not None else {}),
        "unfinished services": finish_services,
        "delegation": app.delegator.work,
        "delegated jobs": app.follower.work,
        "replicas": lambda: keep_replicas(app.room, app.started, app.settings.federation.repair_every),
        "tokens": rotate_tokens,
        "drain": drain,
        "membership": app.membership.work,
        "nodes": app.watch_nodes,
        "quotas": app.tell_quotas,
        **app.engine.loops,
    }
    tasks = [asyncio.create_task(supervised(name, job), name=f"loop {name}") for name, job in work.items()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await app.write_calls()
