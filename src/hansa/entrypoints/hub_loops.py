"""What goes on by itself while a hub runs: staying in step with the database, and periodic work under leases."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import structlog

from hansa.bootstrap import HubApp, Work, memory
from hansa.entrypoints.loops import supervised
from hansa.federation import Duty, Fence, errors, health, judging, syncing
from hansa.kernel.errors import Temporary

_log = structlog.get_logger("hansa.hub")
_DETECT_EVERY = 1.0  # or more often, where clusters report so often that a second matters
_TURNS_PER_BEAT = 4
_TIDY_EVERY = 60.0
_ROLLOUTS_KEPT = 20  # of each document, besides the newest; what every version said is kept for good
_RELEASE_WITHIN = 2.0


async def leased(duty: Duty, every: float, do: Callable[[Fence], Awaitable[object]]) -> None:
    """Does the work here whenever no other hub process has it, and keeps the lease alive between two turns."""
    due = 0.0
    while True:
        try:
            fence = await duty.held()
            if fence is not None and time.monotonic() >= due:
                await do(fence)
                due = time.monotonic() + every
        except errors.LeaseLost as error:
            duty.lost()
            _log.warning("work taken over by another hub", work=duty.work, reason=error.message)
        except Temporary as error:
            _log.info("work waits for the database", work=duty.work, reason=error.message)
        left = due - time.monotonic()
        await asyncio.sleep(min(left if left > 0 else every, duty.ask_every))


@asynccontextmanager
async def running(app: HubApp) -> AsyncIterator[None]:
    """All loops, until the block is left; then the work is handed to whoever comes first."""
    hub = app.hub

    async def tidy(fence: Fence) -> None:
        await hub.clusters.tidy(hub.settings.keep_changes, fence)
        await hub.rollouts.tidy(_ROLLOUTS_KEPT, fence)

    works: list[Work] = [
        (
            "detector",
            min(_DETECT_EVERY, hub.settings.heartbeat_every / _TURNS_PER_BEAT),
            lambda fence: judging.all_clusters(hub, fence),
        ),
        ("housekeeping", _TIDY_EVERY, tidy),
        *app.works,
    ]
    duties = {name: Duty(hub.leases, name, hub.settings.lease_seconds) for name, _, _ in works}
    loops: dict[str, Callable[[], Awaitable[None]]] = {
        "sync": lambda: syncing.keep(hub),
        "holders": lambda: health.keep_holders(hub),
        "memory": memory.collect_when_grown,
    }
    for name, every, do in works:
        loops[name] = _loop(duties[name], every, do)
    tasks = [asyncio.create_task(supervised(name, work), name=f"hub loop {name}") for name, work in loops.items()]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with suppress(Temporary, TimeoutError):
            async with asyncio.timeout(_RELEASE_WITHIN):
                await syncing.once(hub)  # what was heard last
                for duty in duties.values():
                    await duty.release()


def _loop(duty: Duty, every: float, do: Callable[[Fence], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
    return lambda: leased(duty, every, do)
