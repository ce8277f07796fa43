"""How do long-lived services run on this machine? The `ExposedHost` port.

One task for each service brings it from what it is to what it should be: started, stopped, or replaced by a new
version. The new version takes over when it is healthy; where both do not fit at once, the old one ends first.
Not done: scaling by load (`expose.max_scale`, `cpu_threshold`); `min_scale` instances run, at least one.
"""

import asyncio
import contextlib
import socket
import time
from collections.abc import Sequence
from typing import Literal

from hansa import resources, services
from hansa.drivers.local.background import Background
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.instance import Pace, RecentLines
from hansa.drivers.local.replicas import Replicas
from hansa.kernel import errors

State = Literal["pending", "ready", "degraded", "failed", "stopped"]


class NoInstance(errors.Temporary):
    """No instance of the exposed service is healthy now."""

    code = "service.no-instance"


class _Exposed:
    """One service: what it should be, what it is."""

    def __init__(self, engine: Engine, admission: resources.Admission, name: str, pace: Pace) -> None:
        self.name = name
        self.lines = RecentLines()
        self._engine = engine
        self._admission = admission
        self._pace = pace
        self._order: services.RunOrder | None = None
        self._running = False
        self._revision = 0  # one more for every wish
        self._wish = asyncio.Event()
        self._moved = asyncio.Event()
        self._current: Replicas | None = None
        self._previous: Replicas | None = None
        self._shown = ""
        self._since: float | None = None

    def want(self, order: services.RunOrder, *, running: bool) -> None:
        same = self._order is not None and services.same_definition(order, self._order)
        if same and running == self._running:
            return
        self._order, self._running = order, running
        self._again()

    def restart(self) -> None:
        if self._running:
            self._again()

    def _again(self) -> None:
        self._revision += 1
        self._wish.set()
        self.note()

    async def live(self) -> None:
        """Follows the wishes until it is cancelled; then everything ends."""
        try:
            while True:
                await self._wish.wait()
                self._wish.clear()
                if self._running:
                    await self._replace()
                else:
                    await self._stop_all()
                self.note()
        finally:
            await self._stop_all()

    async def _replace(self) -> None:
        assert self._order is not None
        await self._settle_overtaken()
        fresh = Replicas(self._engine, self._admission, self._order, self.lines, self._pace, self.note)
        self._previous, self._current = self._current, fresh
        if self._previous is not None and not fresh.fits_beside:
            await self._retire()
        fresh.start()
        self.note()
        if self._previous is not None:
            await self._until_healthy(fresh)
            if fresh.healthy:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pace.drain):
                        await self._wish.wait()
            if not self._wish.is_set() or fresh.healthy:
                await self._retire()

    async def _settle_overtaken(self) -> None:
        """A change came before the last one was through: whichever version answers goes on until the next."""
        if self._previous is not None and self._current is not None and not self._current.healthy:
            self._current, self._previous = self._previous, self._current
        await self._retire()

    async def _until_healthy(self, fresh: Replicas) -> None:
        """Or until the time is over, or something else is wanted."""
        end = asyncio.get_running_loop().time() + self._pace.handover
        while len(fresh.healthy) < fresh.count and not self._wish.is_set():
            self._moved.clear()
            try:
                async with asyncio.timeout_at(end):
                    await self._moved.wait()
            except TimeoutError:
                return

    async def _retire(self) -> None:
        previous, self._previous = self._previous, None
        if previous is not None:
            await previous.stop()

    async def _stop_all(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            await current.stop()
        await self._retire()

    def note(self) -> None:
        """Something happened: wake who waits for it, and remember since when the state is what it is."""
        self._moved.set()
        state = self.deployment().state
        if state != self._shown:
            self._shown, self._since = state, time.time()

    def deployment(self) -> services.Deployment:
        active = sum(len(replicas.healthy) for replicas in (self._current, self._previous) if replicas)
        if not self._running:
            return self._deployment("stopped", "it was stopped", 0, 0)
        if self._current is None:
            return self._deployment("pending", "it is starting", active, 1)
        state: State
        state, why = self._current.condition
        affected = self._current.count - len(self._current.healthy)
        if state != "ready" and self._previous is not None and self._previous.healthy:
            why = f"a new version is coming, the old one still answers: {why}"
            state = "pending" if state == "pending" else "degraded"
        return self._deployment(state, why, active, affected)

    def _deployment(self, state: State, why: str, active: int, affected: int) -> services.Deployment:
        return services.Deployment(state, why, self._since, active, affected, "exposed_service")

    async def connect(self) -> socket.socket:
        why = self.deployment().reason
        for replicas in (self._current, self._previous) if self._running else ():
            for instance in replicas.in_turn() if replicas is not None else ():
                try:
                    return await instance.dial()
                except errors.Temporary as error:
                    why = str(error)
        raise NoInstance(f"{self.name} has no healthy instance: {why}", hint="see its deployment and its log")


class LocalExposedHost:
    """Exposed services in sandboxes of this machine."""

    def __init__(self, engine: Engine, admission: resources.Admission, pace: Pace | None = None) -> None:
        self._engine = engine
        self._admission = admission
        self._pace = pace or Pace()
        self._services: dict[str, tuple[_Exposed, asyncio.Task[None]]] = {}
        self._background = Background()

    async def apply(self, order: services.RunOrder, *, running: bool) -> None:
        name = order.service.name
        if name not in self._services:
            exposed = _Exposed(self._engine, self._admission, name, self._pace)
            self._services[name] = exposed, self._background.start(exposed.live(), f"expose {name}")
        self._services[name][0].want(order, running=running)

    async def restart(self, name: str) -> None:
        if name in self._services:
            self._services[name][0].restart()

    async def remove(self, name: str) -> None:
        """Nothing of it runs when it returns; a missing one is fine."""
        _, task = self._services.pop(name, (None, None))
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def deployment(self, name: str) -> services.Deployment | None:
        found = self._services.get(name)
        return found[0].deployment() if found else None

    def log(self, name: str, tail: int) -> Sequence[services.LogLine]:
        found = self._services.get(name)
        return found[0].lines.last(tail) if found else ()

    async def connect(self, name: str) -> socket.socket:
        found = self._services.get(name)
        if found is None:
            raise NoInstance(f"{name} is not exposed here")
        return await found[0].connect()

    async def close(self) -> None:
        self._services.clear()
        await self._background.close()
