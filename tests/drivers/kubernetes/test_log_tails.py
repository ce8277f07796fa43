"""Are the last lines of pods kept as they were printed, and does one that prints without end leave a turn to others?"""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace as Named
from typing import Any, cast

from lightkube import AsyncClient

from hansa.drivers.kubernetes.log_tails import LogTails
from hansa.drivers.kubernetes.pods import SCRIPT

POD = Named(
    metadata=Named(uid="u", name="pod", namespace="n"),
    status=Named(
        containerStatuses=[Named(name=SCRIPT, restartCount=0, state=Named(running=Named(), terminated=None))],
        initContainerStatuses=[],
    ),
)


class Prints:
    """What the API server tells, without a pause."""

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self.told = 0

    async def log(self, *_pod: Any, **_how: Any) -> AsyncIterator[str]:
        for _ in range(self._lines):
            self.told += 1
            yield f"2026-01-02T03:04:05.123456789Z line {self.told}"


async def test_the_last_lines_are_kept_with_their_times() -> None:
    prints = Prints(3)
    tails = LogTails(cast(AsyncClient, prints))
    tails.look("page", POD)
    while prints.told < 3:
        await asyncio.sleep(0)
    assert [line.text for line in tails.last("page", 2)] == ["line 2", "line 3"]
    assert {line.at for line in tails.last("page", 2)} == {1767323045.123456}
    assert tails.last("page", 0) == ()
    await tails.close()


async def test_whoever_prints_without_end_leaves_a_turn_to_others() -> None:
    prints = Prints(100_000)
    tails = LogTails(cast(AsyncClient, prints))
    tails.look("page", POD)
    await asyncio.sleep(0.01)
    assert 0 < prints.told < 100_000
    await tails.close()
