"""How do rollouts go on by themselves? The periodic work `rollouts`: one turn takes each open one a step on.

A step is written first, if the rollout still is where it was decided from, and then the clusters it concerns are woken.
Whoever takes the work over after a crash between the two finds clusters that do not have what they should, and were not
told since: they are woken then.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hansa.federation.configuration import assigning, observing, stepping
from hansa.federation.documents import RolloutRecord
from hansa.federation.lifecycle import MEMBER
from hansa.federation.ports import NOW, Fence, Note
from hansa.federation.registry import Known
from hansa.federation.room import Hub

_AGAIN_AFTER = 30.0  # seconds until a cluster that was told and did not follow is told again
_LOOK_AT_ALL = 30.0
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
        hub = self._hub
        for rollout in hub.shelf.rollouts():
            if rollout.state in stepping.UNDER_WAY:
                await self._step(rollout, fence)
        await self._repair(fence)

    async def _step(self, rollout: RolloutRecord, fence: Fence) -> None:
        hub, now = self._hub, self._hub.clock.now()
        new = stepping.step(rollout, observing.audience(hub, rollout, now), now)
        if new == rollout:
            return
        written = await hub.rollouts.put(new, *notes(rollout, new), fence=fence)
        if written is None:
            return  # somebody paused or replaced it; the next turn sees that
        hub.shelf.learn_rollouts((written,))
        await tell(hub, changed(hub, rollout, written), fence)

    async def _repair(self, fence: Fence) -> None:
        """Wakes clusters that have another configuration than they should, and were not told since."""
        hub, now = self._hub, self._hub.clock.now()
        if hub.shelf.edition != self._edition or now - self._looked >= _LOOK_AT_ALL:
            self._edition, self._looked = hub.shelf.edition, now
            looked_at: Iterable[Known] = list(hub.registry)
            self._told = {cluster: at for cluster, at in self._told.items() if now - at < _AGAIN_AFTER}
        else:
            looked_at = [known for cluster in self._touched if (known := hub.registry.get(cluster)) is not None]
        self._touched.clear()
        drifted = [known for known in looked_at if self._must_be_told(known, now)]
        self._told.update(dict.fromkeys(await tell(hub, drifted, fence), now))

    def _must_be_told(self, known: Known, now: float) -> bool:
        if known.record.state not in MEMBER or not assigning.can_be_told(known):
            return False
        seen = observing.sight(self._hub, known, now)
        _, wanted = assigning.told(self._hub.shelf, known)
        if set(wanted) == set(seen.applied.documents) or seen.applied.generation < known.record.desired:
            return False
        if seen.applied.error and set(wanted) == set(seen.applied.tried):
            return False  # it knows, and said why not
        return now - self._told.get(known.id, 0.0) >= _AGAIN_AFTER


async def tell(hub: Hub, clusters: Iterable[Known], fence: Fence | None = None) -> list[str]:
    """There is something new for these; their watches end. Who changed just now is left for the next time."""
    records = [replace(known.record, desired=NOW) for known in clusters]
    if not records:
        return []
    told = await hub.clusters.put_all(records, fence=fence)
    for written in told:
        hub.registry.put(written)
        hub.waking.wake(written.id)
    return [written.id for written in told]


def changed(hub: Hub, old: RolloutRecord, new: RolloutRecord) -> Iterator[Known]:
    """Who should have another version of the document now."""
    for known in hub.registry:
        if assigning.assigned(old, known.id) != assigning.assigned(new, known.id):
            yield known


def notes(old: RolloutRecord, new: RolloutRecord) -> list[Note]:
    """What is worth telling people: stages, ends, and who got it."""
    if (old.state, old.stage, old.given.keys()) == (new.state, new.stage, new.given.keys()):
        return []
    stage = f"stage {new.stage + 1} of {stepping.stage_count(new.stages)}, " if new.state in stepping.OPEN else ""
    return [Note("", "config", f"{new.document} version {new.version}: {stage}{new.state}: {new.reason}")]
