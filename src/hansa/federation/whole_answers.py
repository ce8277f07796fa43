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


@dataclass(slots=True)
class WholeAnswers:
    now: Callable[[], float] = time.monotonic
    _kept: dict[str, tuple[object, float, bytes]] = field(default_factory=dict)
    _making: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    async def get(
        self, what: str, clusters: int, edition: Callable[[], object], make: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """`edition` gives another whenever somebody changed something on purpose."""
        if clusters < LARGE:
            return await make()
        if (kept := self._fresh(what, edition())) is not None:
            return kept
        async with self._making[what]:  # who comes meanwhile waits for what is being made
            wanted, began = edition(), self.now()
            if (kept := self._fresh(what, wanted)) is not None:
                return kept
            body = await make()
            self._kept[what] = wanted, began, body
            return body

    def _fresh(self, what: str, edition: object) -> bytes | None:
        found = self._kept.get(what)
        if found is None or found[0] != edition or self.now() - found[1] >= _FRESH:
            return None
        return found[2]
