"""How are the instances of one version of an exposed service kept alive?

Each place is filled again and again: wait for room, start, live, pause, longer after every failure.
`exposed_host.py` replaces one version by the next.
"""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import structlog

from hansa import resources, services
from hansa.drivers.local.background import Background
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.instance import Instance, Pace, RecentLines

_log = structlog.get_logger("hansa.services")


@dataclass(slots=True)
class _Place:
    instance: Instance | None = None
    failed: str = ""  # why the last one ended; "" before the first end
    waiting: str = ""  # for room

    @property
    def healthy(self) -> bool:
        return self.instance is not None and self.instance.healthy_since is not None


class Replicas:
    """All instances of one version."""

    def __init__(
        self,
        engine: Engine,
        admission: resources.Admission,
        order: services.RunOrder,
        lines: RecentLines,
        pace: Pace,
        changed: Callable[[], None],
    ) -> None:
        self.order = order
        self._engine = engine
        self._admission = admission
        self._lines = lines
        self._pace = pace
        self._changed = changed
        self._needs = resources.Needs(order.cpu, order.memory, order.disk, order.service.owner)
        self._places = [_Place() for _ in range(max(1, order.service.expose.min_scale))]
        self._background = Background()
        self._room = asyncio.Event()
        self._turn = 0
        self._stop_listening = admission.on_release(self._room.set)

    @property
    def count(self) -> int:
        return len(self._places)

    @property
    def healthy(self) -> list[Instance]:
        return [place.instance for place in self._places if place.instance and place.healthy]

    @property
    def fits_beside(self) -> bool:
        """Is there room for all of them besides what runs now?"""
        whole = self._needs.times(self.count)
        return whole.fits_into(self._admission.ledger.free) and not self._admission.over_share(whole)

    def start(self) -> None:
        for number, place in enumerate(self._places):
            name = f"keep {self.order.service.name} {number}"
            self._background.start(self._keep(place, number), name)

    async def stop(self) -> None:
        """All instances have ended when it returns."""
        self._stop_listening()
        await self._background.close()

    def in_turn(self) -> list[Instance]:
        """The healthy ones, beginning with another one every time."""
        healthy = self.healthy
        self._turn += 1
        start = self._turn % len(healthy) if healthy else 0
        return healthy[start:] + healthy[:start]

    @property
    def condition(self) -> tuple[Literal["pending", "ready", "degraded", "failed"], str]:
        """How they are as a whole, and why."""
        healthy = sum(place.healthy for place in self._places)
        why = next((place.failed for place in self._places if place.failed and not place.healthy), "")
        waits = next((place.waiting for place in self._places if place.waiting), "")
        if healthy == self.count:
            return "ready", ""
        if healthy:
            return "degraded", f"{healthy} of {self.count} instances are healthy; {why or waits or 'starting'}"
        if why:
            return "failed", why
        return "pending", waits or "it is starting"

    async def _keep(self, place: _Place, number: int) -> None:
        pause = self._pace.first_pause
        service, task = self.order.service.name, asyncio.current_task()
        while True:
            id = f"{service}-{number}-{secrets.token_hex(4)}"
            await self._hold(id, place)
            instance = place.instance = Instance(self._engine, self.order, id, self._lines, self._pace)
            self._changed()
            try:
                reason = await instance.live(self._changed)
            except Exception as error:  # one that ends badly is followed by another, as every other is
                if task is not None and task.cancelling():  # told to end, and failed on the way
                    raise
                _log.exception("an instance of an exposed service ended badly", service=service, instance=id)
                reason = f"it ended badly: {error}"
            finally:
                place.instance = None
                self._admission.release(id)
            if instance.steady:
                pause = self._pace.first_pause
            place.failed = reason
            self._lines.say(f"instance {number} ended: {reason}; next start in {pause:g} s")
            self._changed()
            await asyncio.sleep(pause)
            pause = min(pause * 2, self._pace.longest_pause)

    async def _hold(self, id: str, place: _Place) -> None:
        while True:
            self._room.clear()
            if self._admission.try_hold(id, self._needs, lasting=True):
                place.waiting = ""
                return
            never = self._admission.ledger.could_ever_hold(self._needs)
            place.waiting = never or self._admission.over_share(self._needs) or "it waits for cpu, memory or disk"
            self._changed()
            await self._room.wait()
