"""What every place of volumes must do: the suite for `VolumePlaces`.

A test module subclasses it and offers the fixtures `places`, `namespace` (in which volumes may be made) and `identity`,
which tells one place from another that was made later under the same name.
"""

import asyncio
from collections.abc import Awaitable, Callable

from hansa.storage import Standing, Volume, VolumePlaces

Identity = Callable[[str], Awaitable[str | None]]  # of the volume's name; None if there is nothing
MIB = 2**20


def volume(namespace: str, name: str = "models", size: int = 100 * MIB) -> Volume:
    return Volume(namespace, name, "alice", size, "", "retain", 0.0)


async def until_phase(places: VolumePlaces, one: Volume, phase: str, seconds: float = 30) -> Standing:
    async with asyncio.timeout(seconds):
        while (seen := places.standing(one.namespace, one.name)).phase != phase:
            await asyncio.sleep(0.05)
    return seen


class VolumePlacesContract:
    async def test_a_place_is_there_until_it_is_removed(
        self, places: VolumePlaces, namespace: str, identity: Identity
    ) -> None:
        one = volume(namespace)
        assert await identity(one.name) is None
        await places.make(one)
        assert await identity(one.name) is not None
        assert places.standing(namespace, one.name).phase in ("Bound", "Pending")
        assert places.place(namespace, one.name).source
        await places.remove(namespace, one.name)
        async with asyncio.timeout(20):
            while await identity(one.name) is not None:
                await asyncio.sleep(0.05)

    async def test_what_an_earlier_volume_left_is_not_seen(
        self, places: VolumePlaces, namespace: str, identity: Identity
    ) -> None:
        """The row went, and we died before its place did."""
        await places.make(volume(namespace))
        before = await identity("models")
        await places.make(volume(namespace))
        assert await identity("models") not in (None, before)

    async def test_a_start_keeps_what_is_there_and_makes_what_is_missing(
        self, places: VolumePlaces, namespace: str, identity: Identity
    ) -> None:
        kept, missing = volume(namespace, "kept"), volume(namespace, "missing")
        await places.make(kept)
        before = await identity("kept")
        await places.load([kept, missing])
        async with asyncio.timeout(20):
            while await identity("missing") is None:
                await asyncio.sleep(0.05)
        assert await identity("kept") == before

    async def test_a_removal_may_be_repeated(self, places: VolumePlaces, namespace: str) -> None:
        await places.make(volume(namespace))
        await places.remove(namespace, "models")
        await places.remove(namespace, "models")
        await places.remove(namespace, "never-made")
