"""How did it come to be as it is? Samples of all figures, taken every minute by one hub, and asked for by charts.

`take` is the periodic work `history`; `of` answers a chart. What is kept, and how, says `samples`.
"""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hansa.federation import acting, figures
from hansa.federation.figures import Figures
from hansa.federation.ports import Fence
from hansa.federation.room import Hub
from hansa.federation.samples import (
    LEVELS,
    SHARDS,
    SUMS,
    WHOLE,
    Level,
    Row,
    merged,
    pack,
    region_name,
    rolled_up,
    shard_of,
    unpack_one,
)
from hansa.kernel.errors import Invalid
from hansa.messages.inventory import History, Sample

EVERY = 10.0  # seconds between two looks at whether a sample is due
MOST_POINTS = 1000
_FINEST = LEVELS[0]
_MOST_AT_ONCE = 6  # slots that are caught up in one turn, after a pause
_PACKED_AT_ONCE = 8  # shards; heartbeats and reads get their turn in between


class BadTime(Invalid):
    """A time to look back to, or its end, makes no sense."""

    code = "federation.bad-time"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a chart wants to show. Neither cluster nor region is the whole federation."""

    start: float
    end: float
    points: int
    cluster: str = ""
    region: str = ""


async def take(hub: Hub, fence: Fence) -> bool:
    """Whether this minute's sample was taken here and now."""
    now = hub.clock.now()
    made_of, turn = hub.registry.version, int(now // _FINEST.seconds)
    if turn <= hub.sampled:
        return False
    rows = await _sampled(hub, turn)
    for finer, coarser in itertools.pairwise(LEVELS):
        rows += await _due(hub, finer, coarser, now)
    keep_from = {level.seconds: int(now // level.seconds) - level.slots for level in LEVELS}
    written = await hub.samples.write(fence, turn, rows, keep_from, made_of)
    hub.sampled = turn
    return written


async def _sampled(hub: Hub, slot: int) -> list[Row]:
    """Everything as it is now. A cluster that is not heard has a gap: nobody knows its figures."""
    shards: dict[int, dict[str, Figures]] = {}
    for cluster, found in hub.inventory.each():
        known = hub.registry.get(cluster)
        if known is not None and known.record.state != "unreachable":
            shards.setdefault(shard_of(cluster), {})[cluster] = found
    sums: dict[str, Figures] = {
        region_name(name): figures.figures(one) for name, one in hub.inventory.regions().items()
    }
    sums[WHOLE] = figures.figures(hub.inventory.total())
    shards[SUMS] = sums
    made: list[Row] = []
    for number, (shard, rows) in enumerate(sorted(shards.items()), 1):
        made.append(Row(_FINEST.seconds, slot, shard, pack(rows)))
        if not number % _PACKED_AT_ONCE:
            await asyncio.sleep(0)
    return made


async def _due(hub: Hub, finer: Level, coarser: Level, now: float) -> list[Row]:
    """Slots of the coarser level that are over and not there yet, as far back as the finer one reaches."""
    newest = await hub.samples.newest(coarser.seconds)
    oldest = int((now - finer.reach) // coarser.seconds) + 1
    first = oldest if newest is None else max(oldest, newest + 1)
    over = int(now // coarser.seconds)  # the first that is not over
    made: list[Row] = []
    ratio = coarser.seconds // finer.seconds
    for slot in range(first, min(over, first + _MOST_AT_ONCE)):
        for shard in range(SUMS, SHARDS):
            rows = await hub.samples.read(finer.seconds, shard, slot * ratio, (slot + 1) * ratio - 1)
            if rows:
                made.append(rolled_up(rows, coarser.seconds, slot))
            elif shard == SUMS:  # no hub was there: a mark that nobody need look for it again
                made.append(Row(coarser.seconds, slot, SUMS, pack({})))
                break
    return made


async def of(hub: Hub, asked: Asked) -> History:
    """At most `points` samples, oldest first; where nothing is known there is none."""
    if asked.cluster:
        acting.get(hub, asked.cluster)
        if asked.region:
            raise Invalid("history is of a cluster or of a region", hint="leave one of them out")
    if not asked.start < asked.end:
        raise BadTime("`from` is not before `to`", hint="give both in seconds since 1970, or negative: before now")
    found = await _read(hub, asked)
    return History(cluster=asked.cluster, region=asked.region, samples=reduced(found, asked))


async def _read(hub: Hub, asked: Asked) -> list[Sample]:
    """From the finest level that reaches back far enough; its last slots are not over yet, so the end of the time
    comes from the finer ones."""
    name = asked.cluster or (region_name(asked.region) if asked.region else WHOLE)
    shard = shard_of(asked.cluster) if asked.cluster else SUMS
    found: list[Sample] = []
    begin = asked.start
    for level in reversed(_levels(asked.start, hub.clock.now())):
        first, last = int(begin // level.seconds), int(asked.end // level.seconds)
        first = max(first, last - level.slots)
        for row in await hub.samples.read(level.seconds, shard, first, last):
            if (one := unpack_one(row.body, name)) is not None:
                at = float(row.slot * row.level)
                found.append(Sample(at=at, seconds=float(row.level), totals=figures.totals(one)))
            begin = max(begin, float((row.slot + 1) * row.level))
    return [one for one in found if one.at < asked.end]


def _levels(start: float, now: float) -> Sequence[Level]:
    """Finest first."""
    for count, level in enumerate(LEVELS, 1):
        if start >= now - level.reach:
            return LEVELS[:count]
    return LEVELS


def reduced(found: Sequence[Sample], asked: Asked) -> tuple[Sample, ...]:
    """Those that fall into the same point of the chart are one."""
    if len(found) <= asked.points:
        return tuple(found)
    width = (asked.end - asked.start) / asked.points
    groups: dict[int, list[Sample]] = {}
    for one in found:
        where = min(asked.points - 1, max(0, int((one.at - asked.start) / width)))
        groups.setdefault(where, []).append(one)
    return tuple(_together(group) for group in groups.values())


def _together(group: Sequence[Sample]) -> Sample:
    parts: list[tuple[Figures, float]] = [(figures.figures(one.totals), one.seconds) for one in group]
    seconds = sum(one.seconds for one in group)
    return Sample(at=group[0].at, seconds=seconds, totals=figures.totals(merged(parts)))


def moment(text: float | None, otherwise: float, now: float) -> float:
    """A time as people give it: seconds since 1970, or how long before now."""
    if text is None:
        return otherwise
    return now + text if text < 0 else text
