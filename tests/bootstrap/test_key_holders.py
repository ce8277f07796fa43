"""Which clusters took keys of their own: is that remembered whatever happens to the database?"""

from typing import Any, cast

import pytest

from hansa.bootstrap.federating import KeyHolders
from hansa.kernel.errors import Temporary
from hansa.store import Facts


class Sick:
    """A database that is away once."""

    def __init__(self) -> None:
        self.away, self.kept = True, None

    async def get(self, name: str) -> Any:
        return self.kept

    async def set(self, name: str, value: Any) -> None:
        if self.away:
            self.away = False
            raise Temporary("the database is away")
        self.kept = value


async def test_one_that_could_not_be_written_down_is_written_with_the_next_call() -> None:
    """Else it may pose as an OSCAR after a restart, and be shown tokens of people."""
    facts = cast(Facts, Sick())
    holders = await KeyHolders.loaded(facts)
    with pytest.raises(Temporary):
        await holders.add("lubeck")
    await holders.add("lubeck")
    assert (await KeyHolders.loaded(facts)).known("lubeck")
