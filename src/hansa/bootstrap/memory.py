"""How does a process with thousands of connections use memory well, and is not stopped by looking after it?"""

import asyncio
import contextlib
import ctypes
import gc
import mmap
from collections.abc import Callable
from pathlib import Path

_M_MMAP_THRESHOLD = -3  # glibc's number for it
_LARGE = 128 * 1024
_YOUNG, _OLDER = 10_000, 20
_STATM = Path("/proc/self/statm")
_GROWN, _AT_LEAST = 1.25, 32 * 2**20
_EVERY = 10.0


def keep_large_apart() -> None:
    """Large pieces come from the system and go back to it, always. Each TLS connection has a buffer of 256 KiB of which
    it touches a page or two; once one of that size was given back, glibc would hand out memory that was used before
    instead, and the whole buffer would count. Where the C library knows no such wish, nothing is changed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


def look_only_when_grown() -> None:
    """The collector of cycles stops all else, and finds next to nothing here: what heartbeats and reads leave behind
    ends by itself. But it counts what is made less what ends, of whatever age, so while thousands of clusters replace
    what they said before, its smallest round goes through all of it. So it has no rounds of its own any more:
    `collect_when_grown` begins one. What was loaded by now stays to the end, and no round goes through that."""
    gc.collect()
    gc.freeze()
    if resident():
        gc.disable()
    else:  # nobody would notice that memory grows
        gc.set_threshold(_YOUNG, _OLDER, _OLDER)


async def collect_when_grown() -> None:
    """For ever."""
    growth = Growth()
    while True:
        await asyncio.sleep(_EVERY)
        growth.look()


def resident() -> int:
    """Bytes of memory this process has now; 0 where the system does not say."""
    try:
        return int(_STATM.read_text().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0


class Growth:
    """Cycles that nobody uses may take a quarter of what the process needs; then they are collected."""

    def __init__(self, now: Callable[[], int] = resident) -> None:
        self._now = now
        self._had = now()

    def look(self) -> bool:
        """Whether it was time to collect."""
        if self._now() <= self._had * _GROWN + _AT_LEAST:
            return False
        gc.collect()
        self._had = self._now()
        return True
