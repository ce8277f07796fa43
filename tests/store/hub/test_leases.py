"""Who does which work: one at a time, taken over when it is not kept alive, each turn once."""

import asyncio

import pytest

from hansa.federation import Duty
from hansa.federation.errors import LeaseLost
from hansa.store import Database
from hansa.store.hub import LeaseStore


@pytest.fixture
def hubs(database: Database) -> list[LeaseStore]:
    return [LeaseStore(database, f"hub-{name}") for name in "abc"]


async def test_one_holds_and_keeps_it(hubs: list[LeaseStore]) -> None:
    held = await asyncio.gather(*(one.hold("detector", 30) for one in hubs))
    (fence,) = [one for one in held if one is not None]
    holder = next(one for one, got in zip(hubs, held, strict=True) if got is not None)
    assert await holder.hold("detector", 30) == fence  # kept alive, it is the same
    assert await hubs[0].holders() == {"detector": fence.holder}
    await holder.release(fence)
    assert await hubs[0].holders() == {}


async def test_one_that_ran_out_is_taken_over_and_its_fence_is_worth_nothing(hubs: list[LeaseStore]) -> None:
    first = await hubs[0].hold("detector", 0.0)
    assert first is not None
    second = await hubs[1].hold("detector", 30)
    assert second is not None
    assert second.epoch > first.epoch
    assert await hubs[0].hold("detector", 30) is None
    with pytest.raises(LeaseLost):
        await hubs[0].once(first, 1)
    assert await hubs[1].once(second, 1)


async def test_one_s_own_that_ran_out_is_a_new_one(hubs: list[LeaseStore]) -> None:
    first = await hubs[0].hold("detector", 0.0)
    again = await hubs[0].hold("detector", 30)
    assert first is not None
    assert again is not None
    assert again.epoch == first.epoch + 1
    with pytest.raises(LeaseLost):
        await hubs[0].once(first, 1)


async def test_a_turn_is_taken_once_whoever_has_the_work(hubs: list[LeaseStore]) -> None:
    first = await hubs[0].hold("history", 30)
    assert first is not None
    assert await hubs[0].once(first, 7)
    assert not await hubs[0].once(first, 7)
    await hubs[0].release(first)
    second = await hubs[1].hold("history", 30)
    assert second is not None
    assert not await hubs[1].once(second, 7)
    assert await hubs[1].once(second, 8)


async def test_a_duty_asks_again_after_it_was_lost(hubs: list[LeaseStore]) -> None:
    mine, theirs = (Duty(one, "detector", 30) for one in hubs[:2])
    fence = await mine.held()
    assert fence is not None
    assert await theirs.held() is None
    assert await mine.held() is fence  # without asking
    await mine.release()
    assert await theirs.held() is not None
    assert await mine.held() is None
