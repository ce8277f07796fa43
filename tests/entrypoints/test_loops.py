"""Does a step of a loop that fails keep the later steps from being taken?"""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hansa.entrypoints.loops import keep_replicas
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
