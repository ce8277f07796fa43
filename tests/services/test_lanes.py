"""Does everybody's work go on in its own order, whatever others brought?"""

import asyncio

from hansa.services.lanes import Lanes


async def test_whoever_brings_much_holds_up_nobody_else() -> None:
    done: list[str] = []
    gate, bobs = asyncio.Event(), asyncio.Event()

    async def work(thing: str) -> None:
        if thing.startswith("alice"):
            await gate.wait()
        done.append(thing)
        if thing == "bob 1":
            bobs.set()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        lanes = Lanes(tasks, work)
        for number in range(3):
            lanes.put("alice", f"alice {number}")
        for number in range(2):
            lanes.put("bob", f"bob {number}")
        await bobs.wait()
        assert done == ["bob 0", "bob 1"]
        gate.set()
    assert done[2:] == ["alice 0", "alice 1", "alice 2"]


async def test_a_lane_has_an_end_and_holds_each_thing_once() -> None:
    done: list[str] = []
    begun, gate = asyncio.Event(), asyncio.Event()

    async def work(thing: str) -> None:
        begun.set()
        await gate.wait()
        done.append(thing)

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        lanes = Lanes(tasks, work, most=2)
        assert lanes.put("alice", "a")
        await begun.wait()
        # "a" is at work, and may have missed what it is asked for now
        assert [lanes.put("alice", thing) for thing in "abbac"] == [True, True, True, True, False]
        assert lanes.put("bob", "d")
        gate.set()
    assert sorted(done) == ["a", "a", "b", "d"]
    assert [thing for thing in done if thing != "d"] == ["a", "a", "b"]
