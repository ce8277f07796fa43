"""How many jobs are being handed over at once? So many to one member, and so many altogether.

A member that answers slowly keeps its own places busy and leaves the others theirs. Whoever has one of all places never
waits for one at a member: its job gives the place up, waits outside for the member (`kept`), and is ranked anew.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

_AT_ONE_MEMBER = 8
_ALTOGETHER = 32


class Crowded(Exception):
    """The member at this address is being offered as many jobs as it may be."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.where = where


class Places:
    """Members go by their addresses: whatever definitions call one, it is as slow."""

    def __init__(self, at_one_member: int = _AT_ONE_MEMBER, altogether: int = _ALTOGETHER) -> None:
        self._each = at_one_member
        self._all = asyncio.Semaphore(altogether)
        self._members: dict[str, asyncio.Semaphore] = {}

    @contextlib.asynccontextmanager
    async def kept(self, where: str) -> AsyncIterator[None]:
        """Waits for one of all places; before that for one at this member, unless it is ""."""
        async with self.taken(where, ""), self._all:
            yield

    def crowded(self, where: str, kept: str) -> str:
        """The member again, if it has no place left; the one that is `kept` is there."""
        return where if where != kept and self._member(where).locked() else ""

    def taken(self, where: str, kept: str) -> AbstractAsyncContextManager[None]:
        """Waits for a place at this member, unless it is the one that is `kept`."""
        return contextlib.nullcontext() if where == kept else self._member(where)

    def _member(self, where: str) -> asyncio.Semaphore:
        return self._members.setdefault(where, asyncio.Semaphore(self._each))
