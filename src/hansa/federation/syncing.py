"""How do memory and database stay in step? What was heard is written down, then what others wrote is learned.

When the database is away both wait, reads go on from memory and say how old it is, and nothing that was heard is lost.
"""

import asyncio
import time

from hansa.federation.room import Hub
from hansa.kernel.errors import HansaError, Temporary


async def once(hub: Hub) -> None:
    """Raises `Temporary` when the database is away."""
    heard = hub.registry.take_unsaved()
    if heard:
        try:
            await hub.clusters.sighted(heard)
        except BaseException:
            hub.registry.give_back(heard)
            raise
        hub.registry.saved(heard)
    await learn(hub)


async def learn(hub: Hub) -> None:
    owed = hub.waking.owed()
    try:
        await _learn(hub)
    except BaseException:
        hub.waking.owe(owed)
        raise
    hub.waking.again(owed)


async def _learn(hub: Hub) -> None:
    first = hub.registry.learned is None
    asked, after = time.monotonic(), hub.registry.version
    news = await hub.clusters.news(after)
    hub.clock.learn(news.now, (asked + time.monotonic()) / 2)
    # First, so that whoever is woken below is told the newest; if it fails, all of this news comes again.
    for_all = [await tell(news.others) for tell in hub.on_news] if news.others else []
    if news.version < hub.registry.version:
        return  # somebody who asked later was faster; what we have is in theirs
    hub.registry.learn(news)
    for record in news.clusters:
        hub.removed.discard(record.id)
        hub.directory.learn(record)
        hub.waking.wake(record.id)
    for cluster, version in news.removed.items():
        forget(hub, cluster, version)
    if any(for_all):
        hub.waking.wake_in_turn()
    if first:
        hub.directory.begin(news.restored)
    # news for who knows nothing tells no changes
    hub.recent.learn(news.changes if after else (await hub.clusters.changes(most=100))[::-1])


def forget(hub: Hub, cluster: str, version: int) -> None:
    """The registry dropped it, with this version. What stays is that it was there: who comes back is told so."""
    hub.shelf.forget(cluster)
    hub.removed.add(cluster)
    hub.directory.forget(cluster, version)
    hub.waking.wake(cluster)


async def keep(hub: Hub) -> None:
    """For ever, every `sync_every` seconds."""
    while True:
        try:
            await once(hub)
            hub.trouble = ""
        except Temporary as error:
            hub.trouble = error.message
        except HansaError as error:
            hub.trouble = error.message
            raise
        hub.attention.come_round(hub.clock.now())
        if hub.directory.announce(hub.clock.now(), hub.registry.version):
            hub.waking.wake_in_turn()
        await asyncio.sleep(hub.settings.sync_every)
