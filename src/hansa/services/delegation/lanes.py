"""In which order, and how many at once, are members asked about our jobs? Each member has a lane of its own.

A member that hangs keeps its own lane busy and nobody else's. A lane is as wide as the number of lanes allows, so all
of them together have a limit, too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from hansa.services.delegation.ledger import Delegation

_WIDEST = 16  # questions to one member at once
_ALTOGETHER = 256


@dataclass(slots=True)
class _Lane:
    waiting: dict[str, Delegation] = field(default_factory=dict)  # by job, first come first
    asked: set[str] = field(default_factory=set)
    workers: set[asyncio.Task[None]] = field(default_factory=set)


class Lanes:
    """`ask` is called for one job of a member after the other, and raises nothing but what ends the task."""

    def __init__(self, ask: Callable[[Delegation], Awaitable[None]]) -> None:
        self._ask = ask
        self._lanes: dict[tuple[str, str], _Lane] = {}

    def fill(self, due: Iterable[Delegation]) -> None:
        """These are to be asked about, as soon as there is room in their lanes. Those that waited before keep their
        places if they are still due, and are forgotten otherwise."""
        by_member: dict[tuple[str, str], dict[str, Delegation]] = {}
        for one in due:
            by_member.setdefault((one.cluster_id, one.endpoint), {})[one.job] = one
        for member in self._lanes.keys() | by_member.keys():
            lane, fresh = self._lanes.setdefault(member, _Lane()), by_member.get(member, {})
            order = (*(job for job in lane.waiting if job in fresh), *fresh)
            lane.waiting = {job: fresh[job] for job in order if job not in lane.asked}
        for member in [member for member, lane in self._lanes.items() if not lane.waiting and not lane.workers]:
            del self._lanes[member]
        for (cluster_id, _), lane in self._lanes.items():
            for _ in range(min(len(lane.waiting), self._width - len(lane.workers))):
                lane.workers.add(asyncio.create_task(self._work(lane), name=f"follow jobs at {cluster_id}"))

    async def close(self) -> None:
        workers = [worker for lane in self._lanes.values() for worker in lane.workers]
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        self._lanes.clear()

    @property
    def _width(self) -> int:
        return max(1, min(_WIDEST, _ALTOGETHER // max(1, len(self._lanes))))

    async def _work(self, lane: _Lane) -> None:
        try:
            while lane.waiting and len(lane.asked) < self._width:  # others may need the room by now
                job = next(iter(lane.waiting))
                delegation = lane.waiting.pop(job)
                lane.asked.add(job)
                try:
                    await self._ask(delegation)
                finally:
                    lane.asked.discard(job)
        finally:
            if (worker := asyncio.current_task()) is not None:
                lane.workers.discard(worker)
