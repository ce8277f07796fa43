"""How was it before? What is kept of the past, how it is packed, and how much is made of less.

Three levels, each coarser and kept longer, so that the whole stays bounded. A slot of a level is a few rows, each with
the figures of many clusters: thousands of clusters cost dozens of rows.
"""

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from hansa.federation.figures import FIELDS, Figures, bounded
from hansa.federation.ports import Fence

SHARDS = 64
SUMS = -1  # the shard that holds regions and the whole federation
WHOLE = ""
_REGION = "region "
# What there is, is told by its highest; what happens with it, by its mean.
_HIGHEST = tuple(name in ("nodes", "cpu", "memory", "disk", "gpu") for name in FIELDS)


@dataclass(frozen=True, slots=True)
class Level:
    seconds: int  # that one sample stands for
    slots: int  # that are kept

    @property
    def reach(self) -> int:
        return self.seconds * self.slots


LEVELS = (Level(60, 120), Level(600, 288), Level(3600, 1440))  # two hours, two days, sixty days


@dataclass(frozen=True, slots=True)
class Row:
    """One shard of one slot of one level."""

    level: int
    slot: int
    shard: int
    body: bytes


class Samples(Protocol):
    """Where they are kept."""

    async def write(
        self, fence: Fence, turn: int, rows: Sequence[Row], keep_from: Mapping[int, int], made_of: int
    ) -> bool:
        """All rows of a turn, and what is older than the first slot to keep of each level goes. The rows were made of
        what was known at the hub's version `made_of`: clusters that were removed since are left out. False if some hub
        took this turn before; `LeaseLost` if the work is not ours any more."""
        ...

    async def read(self, level: int, shard: int, first: int, last: int) -> Sequence[Row]:
        """By slot."""
        ...

    async def newest(self, level: int) -> int | None: ...


class _Body(msgspec.Struct, frozen=True):
    fields: tuple[str, ...]  # figures are named once, for a later version may know others
    rows: dict[str, msgspec.Raw]


_READ = msgspec.msgpack.Decoder(_Body)
_FIGURES = msgspec.msgpack.Decoder(tuple[int, ...])


def pack(rows: Mapping[str, Figures]) -> bytes:
    fitting = {name: bounded(figures) for name, figures in rows.items()}
    return zlib.compress(msgspec.msgpack.encode({"fields": FIELDS, "rows": fitting}), 1)


def unpack(body: bytes) -> dict[str, Figures]:
    found = _READ.decode(zlib.decompress(body))
    return {name: _known(found.fields, _FIGURES.decode(row)) for name, row in found.rows.items()}


def unpack_one(body: bytes, name: str) -> Figures | None:
    """Of many only one: the others are not looked at."""
    found = _READ.decode(zlib.decompress(body))
    row = found.rows.get(name)
    return None if row is None else _known(found.fields, _FIGURES.decode(row))


def without(body: bytes, names: Collection[str]) -> bytes:
    """The same but for these; itself if they are not in it, empty if nobody else is."""
    found = _READ.decode(zlib.decompress(body))
    kept = {name: row for name, row in found.rows.items() if name not in names}
    if len(kept) == len(found.rows):
        return body
    return zlib.compress(msgspec.msgpack.encode({"fields": found.fields, "rows": kept}), 1) if kept else b""


def _known(fields: tuple[str, ...], row: Figures) -> Figures:
    """In the order of this version's figures; what it does not know is left out, what was not told is 0."""
    if fields == FIELDS:
        return row
    told = dict(zip(fields, row, strict=False))
    return tuple(told.get(name, 0) for name in FIELDS)


def shard_of(cluster: str) -> int:
    return zlib.crc32(cluster.encode()) % SHARDS


def region_name(region: str) -> str:
    return _REGION + region


def merged(parts: Sequence[tuple[Figures, float]]) -> Figures:
    """Several samples as one, each with its weight."""
    if len(parts) == 1:
        return parts[0][0]
    weight = sum(one for _, one in parts)
    columns = zip(*(figures for figures, _ in parts), strict=True)
    weights = [one for _, one in parts]
    return tuple(
        max(column) if highest else round(sum(map(_times, column, weights)) / weight)
        for column, highest in zip(columns, _HIGHEST, strict=True)
    )


def _times(value: int, weight: float) -> float:
    return value * weight


def rolled_up(rows: Sequence[Row], level: int, slot: int) -> Row:
    """One slot of a coarser level, of the rows of one shard it covers. Who was there for a part of the time only is
    told by that part."""
    seen: dict[str, list[tuple[Figures, float]]] = {}
    for row in rows:
        for name, figures in unpack(row.body).items():
            seen.setdefault(name, []).append((figures, row.level))
    return Row(level, slot, rows[0].shard, pack({name: merged(parts) for name, parts in seen.items()}))
