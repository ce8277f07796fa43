"""What should a cluster know now? Put together from its record, its neighbours, its configuration and the roots.

Everything in it has a version of the hub, and the generation is the highest of them: a manager asks for what is newer
than it has. So no generation may be told before everything up to it was learned: what this process wrote itself may be
newer than what others wrote and this one has not read yet, and who was told the newer would never ask for the older.
"""

import asyncio

from hansa.federation.errors import NoSuchCluster
from hansa.federation.room import Hub
from hansa.messages.members import Desired


def generation(hub: Hub, cluster: str) -> int:
    known = hub.registry.get(cluster)
    if known is None:
        return 0
    changed = known.record.desired, hub.directory.announced, hub.roots()[1], hub.shelf.told_since(cluster)
    return max((version for version in changed if version <= hub.registry.version), default=0)


def of(hub: Hub, cluster: str, after: int = 0) -> Desired:
    """Neighbours are those that changed after `after`, or all; who waits for approval is told of nobody."""
    known = hub.registry.get(cluster)
    if known is None:
        raise NoSuchCluster(f"there is no cluster {cluster} in this federation")
    record = known.record
    waits = record.state == "pending"
    settings, documents = ({}, ()) if waits else hub.settings_for(cluster)
    neighbours, gone, whole = ((), (), True) if waits else hub.directory.since(after, cluster)
    return Desired(
        generation=generation(hub, cluster),
        state=record.state,
        cordoned=record.cordoned,
        drain=record.wanted in ("drain", "leave"),
        leave=record.wanted == "leave",
        settings=settings,
        documents=documents,
        neighbours=neighbours,
        gone=gone,
        whole=whole,
        roots=hub.roots()[0],
        renew=hub.renew(cluster),
    )


async def newer(hub: Hub, cluster: str, after: int, wait: float) -> Desired | None:
    """What came after `after`, as soon as there is any; None if nothing did within `wait` seconds."""
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    while hub.registry.get(cluster) is not None and generation(hub, cluster) <= after and not hub.waking.closed:
        left = until - loop.time()
        if left <= 0:
            break
        await hub.waking.wait(cluster, left)
    if hub.registry.get(cluster) is None:
        raise NoSuchCluster(f"cluster {cluster} was removed from this federation")
    return of(hub, cluster, after) if generation(hub, cluster) > after else None
