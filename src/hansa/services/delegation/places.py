"""How many jobs are being handed over at once? Each member has places of its own, as many as the number of members
allows.

A member that answers slowly keeps its own places busy and nobody else's: there is none that all of them share, and one
at least for each. Whoever comes to a member that has none left waits outside for it, with nothing in hand, and is
ranked anew. What is shared (`ranking`) is held for a moment, while a job is read or members are ranked for it, and
never while a member is waited for.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

_AT_ONE_MEMBER = 8
_ALTOGETHER = 32


class Crowded(Exception):
    """This member is being offered as many jobs as it may be."""

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.where = where


@dataclass(slots=True)
class _Member:
    busy: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)  # first come first


class Places:
    """Members go by their addresses: whatever definitions call one, it is as slow."""

    def __init__(self, at_one_member: int = _AT_ONE_MEMBER, altogether: int = _ALTOGETHER) -> None:
        self._each = at_one_member
        self._altogether = altogether
        self._members: dict[str, _Member] = {}  # those with somebody at them, or waiting for them
        self.ranking = asyncio.Semaphore(altogether)

    def crowded(self, where: str, kept: str) -> str:
        """The member again, if it has no place left; the one that is `kept` is there."""
        member = self._members.get(where)
        return where if where != kept and member is not None and not self._has_room(member) else ""

    @contextlib.asynccontextmanager
    async def taken(self, where: str, kept: str = "") -> AsyncIterator[None]:
        """Waits for a place at this member, unless it is the one that is `kept`, or ""."""
        if where == kept:
            yield
            return
        await self._enter(where)
        try:
            yield
        finally:
            self._leave(where)

    @property
    def _width(self) -> int:
        return max(1, min(self._each, self._altogether // max(1, len(self._members))))

    def _has_room(self, member: _Member) -> bool:
        return not member.waiting and member.busy < self._width

    async def _enter(self, where: str) -> None:
        member = self._members.setdefault(where, _Member())
        if self._has_room(member):
            member.busy += 1
            return
        turn = asyncio.get_running_loop().create_future()
        member.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with contextlib.suppress(ValueError):  # passed over already
                    member.waiting.remove(turn)
                self._admit()
            else:
                self._leave(where)  # the place was given in this moment
            raise

    def _leave(self, where: str) -> None:
        self._members[where].busy -= 1
        self._admit()

    def _admit(self) -> None:
        """Whoever has left makes the others' share larger, too."""
        for where in [where for where, member in self._members.items() if not member.busy and not member.waiting]:
            del self._members[where]
        for member in self._members.values():
            while member.waiting and member.busy < self._width:
                turn = member.waiting.popleft()
                if not turn.done():
                    turn.set_result(None)
                    member.busy += 1
