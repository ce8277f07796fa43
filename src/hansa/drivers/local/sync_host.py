"""How is `/run` answered? By a warm worker if one stands ready, else by one made for the call.

The `SyncHost` port. `max_scale` bounds how many calls of a service run at once; beyond it callers take turns. Warm
workers hold their cpu and memory while they wait: that is what `min_scale` costs its service's owner. A call
counts for who calls.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import structlog

from hansa import resources, services
from hansa.drivers.local.background import Background
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.worker import Worker
from hansa.kernel import errors

log = structlog.get_logger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


@dataclass(slots=True)
class _Pool:
    """The workers of one service."""

    wanted: services.RunOrder | None = None
    idle: deque[Worker] = field(default_factory=deque)
    line: services.CallLine = field(default_factory=services.CallLine)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    keeper: asyncio.Task[None] | None = None

    @property
    def forgotten(self) -> bool:
        return self.wanted is None and self.line.empty and not self.idle

    @property
    def missing(self) -> bool:
        """Is there a warm worker less than wanted, and room below the service's own bound for one more?"""
        if self.wanted is None:
            return False
        scale = self.wanted.service.synchronous
        within = not scale.max_scale or self.line.busy + len(self.idle) < scale.max_scale
        return len(self.idle) < scale.min_scale and within


class LocalSyncHost:
    """Synchronous calls in sandboxes of this machine."""

    def __init__(self, engine: Engine, admission: resources.Admission) -> None:
        self._engine = engine
        self._admission = admission
        self._pools: dict[str, _Pool] = {}
        self._background = Background()
        self._stop_listening = admission.on_release(self._room)

    async def invoke(self, order: services.RunOrder) -> services.Reply:
        loop = asyncio.get_running_loop()
        end = loop.time() + order.seconds
        pool = self._pools.setdefault(order.service.name, _Pool())
        async with self._place(pool, order, end) as settle:
            worker = await self._worker(pool, order, end, settle)
            try:
                return await worker.answer(order, end - loop.time())
            finally:
                # the caller need not wait for the clearing up; what the worker held is free only after it
                self._background.start(self._throw_away(worker), f"clear {worker.id}")

    async def settle(self, wanted: Mapping[str, services.RunOrder]) -> None:
        """Returns before the workers are warm."""
        for service in {*self._pools, *wanted}:
            pool = self._pools.setdefault(service, _Pool())
            pool.wanted = wanted.get(service)
            if pool.forgotten:
                del self._pools[service]
            for worker in [worker for worker in pool.idle if not self._fits(worker, pool.wanted)]:
                pool.idle.remove(worker)
                self._background.start(self._throw_away(worker), f"clear {worker.id}")
            spare = len(pool.idle) - (pool.wanted.service.synchronous.min_scale if pool.wanted else 0)
            for _ in range(max(spare, 0)):
                worker = pool.idle.pop()
                self._background.start(self._throw_away(worker), f"clear {worker.id}")
            if pool.wanted is not None and (pool.keeper is None or pool.keeper.done()):
                pool.keeper = self._background.start(self._keep_warm(service, pool), f"warm {service}")
            pool.changed.set()

    async def close(self) -> None:
        """Ends every worker, called or not."""
        self._stop_listening()
        await self._background.close()
        for pool in self._pools.values():
            while pool.idle:
                await self._throw_away(pool.idle.pop())

    def warm(self, service: str) -> int:
        """How many workers stand ready."""
        pool = self._pools.get(service)
        return len(pool.idle) if pool else 0

    @asynccontextmanager
    async def _place(self, pool: _Pool, order: services.RunOrder, end: float) -> AsyncIterator[Callable[[], None]]:
        try:
            async with pool.line.place(order, self._admission, end) as settle:
                yield settle
        finally:
            pool.changed.set()

    async def _worker(self, pool: _Pool, order: services.RunOrder, end: float, settle: Callable[[], None]) -> Worker:
        while pool.idle:
            worker = pool.idle.popleft()
            pool.changed.set()
            if self._fits(worker, order):
                if self._admission.hand_over(worker.id, order.payer):
                    settle()
                    return worker
                pool.idle.appendleft(worker)  # it counts for the service's owner, and not for who calls
                break
            self._background.start(self._throw_away(worker), f"clear {worker.id}")
        id = Worker.new_id(order.service.name)
        needs = services.needs_of(order, order.payer)
        if reason := self._admission.ledger.could_ever_hold(needs):
            raise services.no_worker(order, reason)
        left = end - asyncio.get_running_loop().time()
        if not await self._admission.wait_for(id, needs, left):
            raise services.no_worker(order, self._admission.over_share(needs) or "the cluster is full")
        settle()
        return await self._started(order, id)

    async def _started(self, order: services.RunOrder, id: str) -> Worker:
        """What is held under `id` is given back if the worker does not stand."""
        worker = Worker(self._engine, order, id)
        try:
            await worker.start()
        except BaseException:
            await self._throw_away(worker)
            raise
        return worker

    async def _throw_away(self, worker: Worker) -> None:
        try:
            await worker.discard()
        finally:
            self._admission.release(worker.id)

    def _fits(self, worker: Worker, order: services.RunOrder | None) -> bool:
        """Was it made from the same definition?"""
        return order is not None and services.same_definition(order, worker.order)

    # Keeping workers warm: one task for each service that wants any.

    async def _keep_warm(self, service: str, pool: _Pool) -> None:
        pause = _FIRST_PAUSE
        while pool.wanted is not None:
            pool.changed.clear()
            while pool.missing and pool.wanted is not None:
                order, id = pool.wanted, Worker.new_id(service)
                if not self._admission.try_hold(id, services.needs_of(order, order.service.owner), lasting=True):
                    break
                try:
                    worker = await self._started(order, id)
                except (errors.HansaError, OSError) as error:
                    log.warning("a warm worker did not start", service=service, reason=str(error))
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
                    continue
                pause = _FIRST_PAUSE
                if not self._fits(worker, pool.wanted):  # the definition changed meanwhile
                    await self._throw_away(worker)
                    continue
                pool.idle.append(worker)
                self._background.start(self._watch(pool, worker), f"watch {worker.id}")
            await pool.changed.wait()

    async def _watch(self, pool: _Pool, worker: Worker) -> None:
        """A warm worker may die before its call: when the launcher dies, or somebody kills it."""
        await worker.ended()
        if worker in pool.idle:
            pool.idle.remove(worker)
            await self._throw_away(worker)
            pool.changed.set()

    def _room(self) -> None:
        for pool in self._pools.values():
            pool.line.look_again()
            pool.changed.set()
