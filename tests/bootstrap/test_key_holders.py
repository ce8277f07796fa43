"""Which clusters took keys of their own: is that remembered whatever happens to the database?"""

import asyncio
from typing import Any, cast

import pytest

from hansa.bootstrap.federating import KeyHolders
from hansa.kernel.errors import Temporary
from hansa.store import Facts


class Sick:
    """A database that is away once."""

    def __init__(self, *, away: bool = True) -> None:
        self.away, self.kept = away, None

    async def get(self, name: str) -> Any:
        return self.kept

    async def set(self, name: str, value: Any) -> None:
        if self.away:
            self.away = False
            raise Temporary("the database is away")
        await asyncio.sleep(0)
        self.kept = value


async def test_one_that_could_not_be_written_down_is_written_with_the_next_call() -> None:
    """Else it may pose as an OSCAR after a restart, and be shown tokens of people."""
    facts = cast(Facts, Sick())
    holders = await KeyHolders.loaded(facts)
    with pytest.raises(Temporary):
        await holders.add("lubeck")
    await holders.add("lubeck")
    assert (await KeyHolders.loaded(facts)).known("lubeck")


async def test_of_several_that_come_together_all_are_written_down() -> None:
    facts = cast(Facts, Sick(away=False))
    holders = await KeyHolders.loaded(facts)
    await asyncio.gather(*(holders.add(one) for one in ("lubeck", "visby", "riga")))
    again = await KeyHolders.loaded(facts)
    assert all(again.known(one) for one in ("lubeck", "visby", "riga"))
