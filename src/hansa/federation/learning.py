"""How do documents get into memory? What came after the last look is read when the database says there is any.

A step of a rollout is one small row, however many clusters it concerns: each hub process sees for itself who should
have another version now, and wakes them.
"""

from collections.abc import Iterable, Iterator

from hansa.federation.documents import RolloutRecord, assigned
from hansa.federation.registry import Known
from hansa.federation.room import Hub

_OURS = frozenset({"documents", "rollouts"})


async def learn(hub: Hub, changed: frozenset[str] = _OURS) -> None:
    """What a rollout speaks of was written with it or before: read after the rollouts, it cannot be missing."""
    if not changed & _OURS:
        return
    shelf = hub.shelf
    rollouts = await hub.rollouts.after(shelf.rollouts_seq)
    records = await hub.documents.after(shelf.documents_seq)
    shelf.learn_documents(records)
    take(hub, rollouts)
    shelf.documents_seq = max([shelf.documents_seq, *(record.seq for record in records)])
    if hub.registry.learned is None:  # this is the start
        shelf.begin(max((rollout.seq for rollout in rollouts), default=0))
    shelf.rollouts_seq = max([shelf.rollouts_seq, *(rollout.seq for rollout in rollouts)])


def take(hub: Hub, rollouts: Iterable[RolloutRecord]) -> None:
    """Rollouts that were read, or just written."""
    for new in rollouts:
        old = hub.shelf.rollout(new.document)
        hub.shelf.learn_rollouts((new,))
        if hub.shelf.rollout(new.document) is not new:
            continue  # memory is ahead of it
        for known in _concerned(hub, old, new):
            hub.shelf.gave(known.id, new.seq)
            hub.waking.wake(known.id)


def _concerned(hub: Hub, old: RolloutRecord | None, new: RolloutRecord) -> Iterator[Known]:
    """Who should have another version of the document than before."""
    for known in hub.registry:
        if assigned(old, known.id) != assigned(new, known.id):
            yield known
