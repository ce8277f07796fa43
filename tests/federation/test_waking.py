"""Watches that are woken: one, all at once, and all in turn."""

import asyncio

from hansa.federation.waking import Waking


async def waiting(waking: Waking, count: int) -> list["asyncio.Task[None]"]:
    tasks = [asyncio.create_task(waking.wait(f"cluster-{number}", 30)) for number in range(count)]
    await asyncio.sleep(0)
    return tasks


async def settled() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_one_is_woken_for_itself() -> None:
    waking = Waking()
    one, other = await waiting(waking, 2)
    waking.wake("cluster-0")
    await settled()
    assert (one.done(), other.done()) == (True, False)
    waking.wake_all()
    await other


async def test_thousands_are_woken_some_at_a_time() -> None:
    waking = Waking()
    tasks = await waiting(waking, 130)
    waking.wake_in_turn()
    later = asyncio.create_task(waking.wait("newcomer", 30))  # it knows already what the others are woken for
    await settled()
    assert 0 < sum(task.done() for task in tasks) < len(tasks)
    async with asyncio.timeout(20):
        await asyncio.gather(*tasks)
    assert not later.done()
    waking.wake_all()
    await later


async def test_waiting_ends_by_itself() -> None:
    await Waking().wait("visby", 0.01)
