"""How do memory and database stay in step? What was heard is written down, then what others wrote is learned.

When the database is away both wait, reads go on from memory and say how old it is, and nothing that was heard is lost.
"""

import asyncio
import time
from collections.abc import Sequence

import structlog

from hansa.federation.ports import Sighting
from hansa.federation.room import Hub
from hansa.kernel.errors import HansaError, Temporary

_log = structlog.get_logger("hansa.hub")


async def once(hub: Hub) -> None:
    """Raises `Temporary` when the database is away."""
    heard = hub.registry.take_unsaved()
    if heard:
        try:
            await _write(hub, heard)
        except BaseException:
            hub.registry.give_back(heard)
            raise
        hub.registry.saved(heard)
    await learn(hub)


async def _write(hub: Hub, heard: Sequence[Sighting]) -> None:
    """Together, or if that fails each for itself: what cannot be written of one is no reason to write of none."""
    try:
        await hub.clusters.sighted(heard)
        return
    except HansaError:
        raise
    except Exception:
        if len(heard) == 1:
            # It stays in memory. Tried again, it would fail again.
            _log.exception("what a cluster said could not be written down", cluster=heard[0].cluster)
            return
    for one in heard:
        await _write(hub, [one])


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
        except Exception:
            hub.trouble = "it cannot be kept in step; the log says why"
            raise
        hub.attention.come_round(hub.clock.now())
        if hub.directory.announce(hub.clock.now(), hub.registry.version):
            hub.waking.wake_in_turn()
        await asyncio.sleep(hub.settings.sync_every)
