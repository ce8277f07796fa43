"""Does everybody who waits for a service have their turn?"""

import asyncio
import time

import pytest

from hansa.services import CallLine, NoWorker
from hansa.services.call_line import MOST_WAITING, Rotation

SOON = 5.0


def anybody(call: object) -> bool:
    return True


def drained(line: "Rotation[str]") -> list[str | None]:
    order = []
    while line:
        order.append(line.next(anybody))
    return order


def test_callers_take_turns_each_in_the_order_of_arrival() -> None:
    line: Rotation[str] = Rotation()
    for call in ("q1", "q2", "q3", "b1", "q4", "a1", "b2"):
        line.join(call[0], call)
    assert drained(line) == ["q1", "b1", "a1", "q2", "b2", "q3", "q4"]


def test_who_may_not_go_lets_others_pass_and_keeps_the_turn() -> None:
    line: Rotation[str] = Rotation()
    for call in ("q1", "b1", "b2"):
        line.join(call[0], call)
    assert line.next(lambda call: call[0] != "q") == "b1"
    assert line.next(lambda call: False) is None
    assert drained(line) == ["q1", "b2"]


def test_who_leaves_is_not_called() -> None:
    line: Rotation[str] = Rotation()
    for call in ("q1", "q2", "b1"):
        line.join(call[0], call)
    line.leave("q", "q1")
    line.leave("b", "b1")
    assert (line.waiting("q"), line.waiting("b")) == (1, 0)
    assert drained(line) == ["q2"]


def end(seconds: float = SOON) -> float:
    return time.monotonic() + seconds


async def enters(line: CallLine, caller: str, most: int = 1, seconds: float = SOON) -> None:
    """It has its share at once."""
    await line.enter(caller, most, end(seconds), lambda: True)
    line.settle(caller)


async def waits(line: CallLine, caller: str, most: int = 1) -> "asyncio.Task[None]":
    task = asyncio.create_task(enters(line, caller, most))
    await asyncio.sleep(0)
    return task


async def test_the_next_one_goes_when_one_leaves() -> None:
    line = CallLine()
    await enters(line, "quinn")
    again, bob = await waits(line, "quinn"), await waits(line, "bob")
    assert (line.busy, again.done(), bob.done()) == (1, False, False)
    line.leave()
    await again
    once_more = await waits(line, "quinn")
    line.leave()
    await bob
    assert not once_more.done()
    line.leave()
    await once_more
    line.leave()
    assert line.empty


async def test_without_a_bound_nobody_waits() -> None:
    line = CallLine()
    for _ in range(MOST_WAITING + 10):
        await enters(line, "quinn", 0)
    assert line.busy == MOST_WAITING + 10


async def test_one_caller_has_so_many_waiting_and_others_still_come() -> None:
    line = CallLine()
    await enters(line, "quinn")
    calls = [await waits(line, "quinn") for _ in range(MOST_WAITING)]
    with pytest.raises(NoWorker, match="calls of yours"):
        await enters(line, "quinn")
    bob = await waits(line, "bob")
    line.leave()
    line.leave()
    await bob
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_whose_share_is_used_up_holds_no_place() -> None:
    line, share = CallLine(), False
    quinn = asyncio.create_task(line.enter("quinn", 1, end(), lambda: share))
    await asyncio.sleep(0)
    await enters(line, "bob")
    line.leave()
    assert not quinn.done()
    share = True
    line.look_again()
    await quinn


@pytest.mark.parametrize("late", [False, True])
async def test_a_place_is_not_lost_with_who_gives_up(late: bool) -> None:
    """Nor if they give up in the very moment that they are called."""
    line = CallLine()
    await enters(line, "alice")
    quinn, bob = await waits(line, "quinn"), await waits(line, "bob")
    if late:
        line.leave()
    quinn.cancel()
    if not late:
        line.leave()
    await bob
    assert line.busy == 1
    with pytest.raises(TimeoutError):
        await enters(line, "carol", seconds=0.01)
    line.leave()
    assert line.empty


async def test_of_one_caller_the_next_is_called_when_the_last_one_holds_its_share() -> None:
    """Else one free share would call up all of them, and they would wait for it in everybody's places."""
    line, share = CallLine(), 1

    async def call(caller: str) -> None:
        nonlocal share
        await line.enter(caller, 10, end(), lambda: caller != "quinn" or share > 0)
        if caller == "quinn":
            share -= 1
        line.settle(caller)

    calls = [asyncio.create_task(call("quinn")) for _ in range(20)]
    await asyncio.sleep(0.01)
    assert (line.busy, sum(one.done() for one in calls)) == (1, 1)
    await call("bob")
    share = 1
    line.leave()  # the one that had the share is over
    await asyncio.sleep(0.01)
    assert (line.busy, sum(one.done() for one in calls)) == (2, 2)
    for one in calls:
        one.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
