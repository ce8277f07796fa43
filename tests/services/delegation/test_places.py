"""Does a member that is slow to answer leave places for the others?"""

import asyncio
from contextlib import AsyncExitStack

from hansa.services.delegation.places import Places


async def test_one_member_cannot_have_all_places() -> None:
    places = Places(at_one_member=2, altogether=4)
    async with AsyncExitStack() as slow:
        for _ in range(2):
            await slow.enter_async_context(places.kept(""))
            assert places.crowded("visby", "") == ""
            await slow.enter_async_context(places.taken("visby", ""))
        assert places.crowded("visby", "") == "visby"
        assert places.crowded("riga", "") == ""
    assert places.crowded("visby", "") == ""


async def test_whoever_waits_for_a_member_keeps_nobody_else_waiting() -> None:
    places, in_time = Places(at_one_member=1, altogether=2), asyncio.Event()

    async def wait_for_visby() -> None:
        async with places.kept("visby"):
            assert places.crowded("visby", "visby") == ""
            async with places.taken("visby", "visby"):  # it does not wait for itself
                assert in_time.is_set()

    async with AsyncExitStack() as slow:
        await slow.enter_async_context(places.kept("visby"))
        waiting = [asyncio.create_task(wait_for_visby()) for _ in range(5)]
        async with asyncio.timeout(30), places.kept(""), places.taken("riga", ""):
            in_time.set()
    await asyncio.wait_for(asyncio.gather(*waiting), 30)
