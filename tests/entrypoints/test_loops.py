"""Does a step of a loop that fails keep the later steps from being taken? Is trouble said once, with its hint?"""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog

from hansa.entrypoints.loops import keep_replicas, supervised
from hansa.kernel.errors import Temporary


@pytest.mark.parametrize("trouble", [RuntimeError("nobody thought of this"), Temporary("the database is away")])
async def test_replicas_are_repaired_although_operations_cannot_be_taken_back(trouble: Exception) -> None:
    looked = asyncio.Queue[None]()

    async def broken() -> None:
        raise trouble

    async def forget_others(_: object) -> None:
        looked.put_nowait(None)

    room = SimpleNamespace(
        operations=SimpleNamespace(open=broken),
        records=SimpleNamespace(all=list),
        sightings=SimpleNamespace(forget_others=forget_others),
    )
    loop = asyncio.create_task(keep_replicas(cast(Any, room), started=0.0, repair_every=0.0))
    try:
        async with asyncio.timeout(20):
            await looked.get()
            await looked.get()
        assert not loop.done()
    finally:
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)


async def stopped(loop: asyncio.Task[None]) -> None:
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)


async def test_a_loop_that_stops_again_with_the_same_words_says_so_once_with_its_hint() -> None:
    begun = asyncio.Queue[None]()

    async def work() -> None:
        begun.put_nowait(None)
        raise Temporary("MinIO does not answer", hint="start it")

    with structlog.testing.capture_logs() as said:
        loop = asyncio.create_task(supervised("store repair", work))
        try:
            async with asyncio.timeout(20):
                await begun.get()
                await begun.get()
                await begun.get()
        finally:
            await stopped(loop)
    assert said == [
        {
            "event": "loop stopped",
            "loop": "store repair",
            "error": "MinIO does not answer",
            "hint": "start it",
            "log_level": "warning",
        }
    ]


async def test_a_step_that_fails_again_with_the_same_words_says_so_once_with_its_hint() -> None:
    looked = asyncio.Queue[None]()

    async def broken() -> None:
        looked.put_nowait(None)
        raise Temporary("the database is away", hint="check database.url")

    room = SimpleNamespace(operations=SimpleNamespace(open=broken))
    with structlog.testing.capture_logs() as said:
        loop = asyncio.create_task(keep_replicas(cast(Any, room), started=0.0, repair_every=0.1))
        try:
            async with asyncio.timeout(20):
                await looked.get()
                await looked.get()
        finally:
            await stopped(loop)
    told = [one for one in said if one.get("step") == "taking back"]
    assert [(one["error"], one["hint"]) for one in told] == [("the database is away", "check database.url")]
