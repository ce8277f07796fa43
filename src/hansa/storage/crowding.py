"""Is there less room on the store's disk than the manager keeps for itself? Then nobody adds anything, until there is.

Only the embedded store is on the manager's own disk. People write to it with keys of their own, past the manager, so
the store itself shuts them out, all of them with one word. Reading and deleting go on. What runs made is stored as long
as half of the reserve is left, and waits then (`drivers/local/staging.py`).
"""

import asyncio
from collections.abc import Callable

import structlog

from hansa.kernel import quantities
from hansa.kernel.errors import HansaError
from hansa.storage.ports import Closable
from hansa.storage.register import BucketRegister

_log = structlog.get_logger("hansa.storage")
_EVERY = 0.5  # seconds
_MORE = 1.05  # times the reserve: a disk at its limit must not open and shut the store all the time
WORDS = (
    "the disk of this cluster is nearly full, so nothing can be added to its buckets. They can be read and emptied; "
)
AGAIN = "with room again they take new objects again"


class Crowding:
    def __init__(
        self, register: BucketRegister, store: Closable, free: Callable[[], int], reserve: int, every: float = _EVERY
    ) -> None:
        """`free` tells how many bytes the disk has left, at once: in a thread it would wait for those who move files of
        tenants. `every` is the number of seconds between looks."""
        self._register = register
        self._store = store
        self._free = free
        self._reserve = reserve
        self._every = every
        self._told: bool | None = None  # what the store knows; after a start nobody can say

    async def work(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.look()
            except HansaError as error:
                _log.info("the store could not be told how full its disk is", error=error.message)
            await asyncio.sleep(self._every)

    async def look(self) -> None:
        free = self._free()
        closed = free < self._reserve * (_MORE if self._told else 1)
        self._register.crowded = f"{WORDS}{AGAIN}" if closed else ""
        if closed == self._told:
            return
        await self._store.close_to_people(closed)
        if closed:
            _log.warning(
                "the store takes no objects: its disk has less room than jobs.disk_reserve",
                free=quantities.show_size(free),
                reserve=quantities.show_size(self._reserve),
            )
        elif self._told:
            _log.info("the store takes objects again", free=quantities.show_size(free))
        self._told = closed
