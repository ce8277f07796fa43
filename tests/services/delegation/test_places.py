"""Does a member that is slow to answer leave places for the others?"""

import asyncio
from contextlib import AsyncExitStack

from hansa.services.delegation.places import Places


async def test_one_member_has_its_own_places_and_no_more() -> None:
    places = Places(at_one_member=2, altogether=4)
    async with AsyncExitStack() as slow:
        for _ in range(2):
            assert places.crowded("visby", "") == ""
            await slow.enter_async_context(places.taken("visby"))
        assert places.crowded("visby", "") == "visby"
        assert places.crowded("riga", "") == ""
    assert places.crowded("visby", "") == ""


async def test_more_members_have_fewer_places_each_and_one_at_least() -> None:
    places = Places(at_one_member=4, altogether=4)
    had = dict.fromkeys((f"slow-{number}" for number in range(4)), 0)
    async with AsyncExitStack() as slow:
        for where in had:
            while not places.crowded(where, ""):
                await slow.enter_async_context(places.taken(where))
                had[where] += 1
        assert list(had.values()) == [4, 2, 1, 1]
        async with places.taken("quick"):
            assert places.crowded("quick", "") == "quick"


async def test_whoever_waits_for_a_member_keeps_nobody_else_waiting() -> None:
    places, in_time = Places(at_one_member=1, altogether=2), asyncio.Event()

    async def wait_for_visby() -> None:
        async with places.taken("visby"):
            assert places.crowded("visby", "visby") == ""
            async with places.taken("visby", "visby"):  # it does not wait for itself
                assert in_time.is_set()

    async with AsyncExitStack() as slow:
        await slow.enter_async_context(places.taken("visby"))
        waiting = [asyncio.create_task(wait_for_visby()) for _ in range(5)]
        async with asyncio.timeout(30), places.taken("riga"):
            in_time.set()
    await asyncio.wait_for(asyncio.gather(*waiting), 30)


async def test_one_that_gives_up_waiting_leaves_its_turn_to_the_next() -> None:
    places = Places(at_one_member=1, altogether=2)

    async def wait_for_visby() -> None:
        async with places.taken("visby"):
            pass

    async with places.taken("visby"):
        waiting = [asyncio.create_task(wait_for_visby()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
    waiting[1].cancel()  # in the moment its turn has come
    await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 30)
    assert not waiting[2].cancelled()
    assert places.crowded("visby", "") == ""
