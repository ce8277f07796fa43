"""Answers about everybody: in a large federation they are made once for all who ask at about the same moment.

To say how thousands of clusters are takes many times what it takes to say how one is, and meanwhile everything else
waits. What people and clusters changed is always in the answer; what clusters reported since may be half a second late.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

LARGE = 200  # clusters: with fewer, an answer costs little
_FRESH = 0.5  # seconds


@dataclass(frozen=True, slots=True)
class _Kept:
    edition: object
    begun: float
    body: bytes


@dataclass(slots=True)
class WholeAnswers:
    now: Callable[[], float] = time.monotonic
    _kept: dict[str, _Kept] = field(default_factory=dict)
    _making: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    async def get(
        self, what: str, clusters: int, edition: Callable[[], object], make: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """`edition` gives another whenever somebody changed something on purpose."""
        if clusters < LARGE:
            return await make()
        came = self.now()
        if (found := self._kept.get(what)) is not None and self._is_fresh(found, edition()):
            return found.body
        async with self._making[what]:
            # One that was begun while we waited has in it all that was changed before we came.
            if (found := self._kept.get(what)) is not None and (found.begun > came or self._is_fresh(found, edition())):
                return found.body
            began, begun_with = self.now(), edition()
            body = await make()
            self._kept[what] = _Kept(begun_with, began, body)
            return body

    def _is_fresh(self, kept: _Kept, edition: object) -> bool:
        return kept.edition == edition and self.now() - kept.begun < _FRESH
