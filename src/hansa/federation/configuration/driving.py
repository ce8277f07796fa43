"""How do rollouts go on by themselves? The periodic work `rollouts`: one turn takes each open one a step on.

A step is written if the rollout still is where it was decided from, and that is all: every hub process that learns of
it wakes the clusters it concerns. One that all the same does not have what it should, because its facts changed and
another document means it, or because it asked a hub that was a moment behind, is told by name.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from hansa.federation import judging, learning
from hansa.federation.configuration import assigning, observing, stepping
from hansa.federation.configuration.assigning import Assignment
from hansa.federation.documents import RolloutRecord
from hansa.federation.lifecycle import MEMBER
from hansa.federation.ports import NOW, Fence, Note
from hansa.federation.registry import Known
from hansa.federation.room import Hub

_AGAIN_AFTER = 30.0  # seconds until a cluster that was told and did not follow is told again
_LOOK_AT_ALL = 30.0
_AT_ONCE = 200  # clusters looked at, or told, in one go: others want to read and write, too
EVERY = 1.0


class Driver:
    """Remembers between two turns only what saves work; losing it loses nothing."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._touched: set[str] = set()
        self._edition = -1
        self._looked = 0.0
        self._told: dict[str, float] = {}
        hub.registry.watch(self._touched.add)

    async def turn(self, fence: Fence) -> None:
        hub, now = self._hub, self._hub.clock.now()
        rollouts = [rollout for rollout in hub.shelf.rollouts() if rollout.state in stepping.UNDER_WAY]
        if rollouts:
            audiences = [observing.Audience(hub.shelf, rollout) for rollout in rollouts]
            for some in batched(list(hub.registry)):
                observing.look(hub, audiences, now, some)
                await asyncio.sleep(0)  # thousands of clusters: others want to be answered meanwhile
            for rollout, audience in zip(rollouts, audiences, strict=True):
                await self._step(rollout, audience.seen, now, fence)
        await self._repair(fence)

    async def _step(self, rollout: RolloutRecord, seen: dict[str, stepping.Seen], now: float, fence: Fence) -> None:
        hub = self._hub
        new = stepping.step(rollout, seen, now)
        if new == rollout:
            return
        written = await hub.rollouts.put(new, *notes(rollout, new), fence=fence)
        if written is not None:  # else somebody paused or replaced it; the next turn sees that
            learning.take(hub, (written,))

    async def _repair(self, fence: Fence) -> None:
        """Wakes clusters that have another configuration than they should, and were not told since."""
        hub, now = self._hub, self._hub.clock.now()
        if hub.shelf.edition != self._edition or now - self._looked >= _LOOK_AT_ALL:
            self._edition, self._looked = hub.shelf.edition, now
            looked_at = list(hub.registry)
            self._told = {cluster: at for cluster, at in self._told.items() if now - at < _AGAIN_AFTER}
        else:
            looked_at = [known for cluster in self._touched if (known := hub.registry.get(cluster)) is not None]
        self._touched.clear()
        drifted: list[Known] = []
        for some in batched(looked_at):
            documents = assigning.assignments(hub.shelf)
            drifted += [known for known in some if self._must_be_told(known, documents, now)]
            await asyncio.sleep(0)
        self._told.update(dict.fromkeys(await tell(hub, drifted, fence), now))

    def _must_be_told(self, known: Known, documents: Sequence[Assignment], now: float) -> bool:
        if known.record.state not in MEMBER or not assigning.can_be_told(known):
            return False
        applied = judging.applied_of(known)
        wanted = {one.document: version for one in documents if (version := one.wanted(known))}
        if wanted == {one.name: one.version for one in applied.documents}:
            return False
        if applied.generation < max(known.record.desired, self._hub.shelf.told_since(known.id)):
            return False
        if applied.error and wanted == {one.name: one.version for one in applied.tried}:
            return False  # it knows, and said why not
        return now - self._told.get(known.id, 0.0) >= _AGAIN_AFTER


async def tell(hub: Hub, clusters: Iterable[Known], fence: Fence | None = None) -> list[str]:
    """There is something new for these; their watches end. Who changed just now is left for the next time."""
    told: list[str] = []
    for some in batched(list(clusters)):
        for written in await hub.clusters.put_all([replace(known.record, desired=NOW) for known in some], fence=fence):
            hub.registry.put(written)
            hub.waking.wake(written.id)
            told.append(written.id)
    return told


def batched(clusters: Sequence[Known]) -> Iterator[Sequence[Known]]:
    for begin in range(0, len(clusters), _AT_ONCE):
        yield clusters[begin : begin + _AT_ONCE]


def notes(old: RolloutRecord, new: RolloutRecord) -> list[Note]:
    """What is worth telling people: stages, ends, and who got it."""
    if (old.state, old.stage, old.given.keys()) == (new.state, new.stage, new.given.keys()):
        return []
    stage = f"stage {new.stage + 1} of {stepping.stage_count(new.stages)}, " if new.state in stepping.OPEN else ""
    return [Note("", "config", f"{new.document} version {new.version}: {stage}{new.state}: {new.reason}")]
