"""Is every sample written once, whichever hub takes its turn, and gone when its time is over?"""

import asyncio

import pytest

from hansa.federation import Fence
from hansa.federation.errors import LeaseLost
from hansa.federation.samples import Row
from hansa.store import Database
from hansa.store.hub import LeaseStore, SampleStore


@pytest.fixture
def samples(database: Database) -> SampleStore:
    return SampleStore(database)


async def held(database: Database, holder: str = "hub-a", seconds: float = 30.0) -> Fence:
    fence = await LeaseStore(database, holder).hold("history", seconds)
    assert fence is not None
    return fence


def rows(slot: int, body: bytes = b"x", level: int = 60) -> list[Row]:
    return [Row(level, slot, shard, body + bytes([shard % 256])) for shard in (-1, 0, 63)]


async def test_what_is_written_is_read(samples: SampleStore, database: Database) -> None:
    fence = await held(database)
    assert await samples.newest(60) is None
    for slot in (8, 7, 9):
        assert await samples.write(fence, slot, rows(slot), {}, 0)
    assert await samples.read(60, 63, 7, 8) == [Row(60, 7, 63, b"x?"), Row(60, 8, 63, b"x?")]
    assert await samples.read(60, 1, 0, 99) == []
    assert await samples.read(600, 0, 0, 99) == []
    assert (await samples.newest(60), await samples.newest(600)) == (9, None)
    assert await samples.write(fence, 10, [], {}, 0)


async def test_a_turn_is_taken_once(samples: SampleStore, database: Database) -> None:
    first = await held(database)
    assert await samples.write(first, 7, rows(7, b"first"), {}, 0)
    assert not await samples.write(first, 7, rows(7, b"again"), {}, 0)
    await LeaseStore(database, "hub-a").release(first)
    second = await held(database, "hub-b")
    assert not await samples.write(second, 7, rows(7, b"other"), {}, 0)
    assert [one.body for one in await samples.read(60, 0, 7, 7)] == [b"first\0"]
    assert await samples.write(second, 8, rows(7, b"late") + rows(8), {}, 0)
    assert [one.body for one in await samples.read(60, 0, 7, 8)] == [b"first\0", b"x\0"]


async def test_of_many_at_once_one_writes(samples: SampleStore, database: Database) -> None:
    fence = await held(database)
    tried = await asyncio.gather(*(samples.write(fence, 7, rows(7, b"%d" % one), {}, 0) for one in range(8)))
    assert tried.count(True) == 1
    bodies = [(await samples.read(60, shard, 7, 7))[0].body[:1] for shard in (-1, 0, 63)]
    assert bodies == [b"%d" % tried.index(True)] * 3


async def test_who_lost_the_work_writes_nothing(samples: SampleStore, database: Database) -> None:
    lost = await held(database, seconds=0.0)
    kept = await held(database, "hub-b")
    with pytest.raises(LeaseLost):
        await samples.write(lost, 7, rows(7), {60: 100}, 0)
    assert await samples.newest(60) is None
    assert await samples.write(kept, 7, rows(7), {}, 0)  # the turn was not taken


async def test_what_is_old_goes_by_level(samples: SampleStore, database: Database) -> None:
    fence = await held(database)
    await samples.write(fence, 1, rows(1) + rows(2) + rows(3) + rows(1, level=600), {}, 0)
    await samples.write(fence, 2, [], {60: 3, 600: 1}, 0)
    assert [one.slot for one in await samples.read(60, 0, 0, 9)] == [3]
    assert [one.slot for one in await samples.read(600, 0, 0, 9)] == [1]
