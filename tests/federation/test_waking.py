"""Watches that are woken: one, all in turn, once more, and all at the end."""

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
    waking.close()
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
    waking.close()
    await later


async def test_waiting_ends_by_itself() -> None:
    await Waking().wait("visby", 0.01)


async def test_who_was_woken_too_early_is_woken_once_more() -> None:
    waking = Waking()
    (early,) = await waiting(waking, 1)
    waking.wake("cluster-0")
    await early
    owed = waking.owed()
    waking.wake("cluster-1")  # after the database was asked: it may still be too early for it
    tasks = await waiting(waking, 3)
    waking.again(owed)
    await settled()
    assert [task.done() for task in tasks] == [True, True, False]
    assert waking.owed() == {"cluster-1"}
    waking.owe(owed)
    assert waking.owed() == {"cluster-0"}
    waking.close()
    await tasks[2]
