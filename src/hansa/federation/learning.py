"""How do documents get into memory? What came after the last look is read when the database says there is any."""

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
    shelf.learn_rollouts(rollouts)
    shelf.documents_seq = max([shelf.documents_seq, *(record.seq for record in records)])
    shelf.rollouts_seq = max([shelf.rollouts_seq, *(rollout.seq for rollout in rollouts)])
