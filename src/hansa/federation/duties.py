"""Who does the periodic work of a hub? Whichever process holds its lease; a dead one's is taken over."""

import time

from hansa.federation.ports import Fence, Leases


class Duty:
    """One periodic work, as this process sees it."""

    def __init__(self, leases: Leases, work: str, seconds: float) -> None:
        self.work = work
        self._leases = leases
        self._seconds = seconds
        self._fence: Fence | None = None
        self._renew_at = 0.0
        self.ask_every = seconds / 3

    async def held(self) -> Fence | None:
        """The right to do it now, or None if another process has it. The database is asked only now and then: its
        check of the fence, in every write, is what counts."""
        if self._fence is not None and time.monotonic() < self._renew_at:
            return self._fence
        asked = time.monotonic()
        self._fence = None  # whatever happens to this question, the old answer is worth nothing now
        self._fence = await self._leases.hold(self.work, self._seconds)
        self._renew_at = asked + self.ask_every
        return self._fence

    def lost(self) -> None:
        """The database said so: ask before the next turn."""
        self._fence = None

    async def release(self) -> None:
        if self._fence is not None:
            fence, self._fence = self._fence, None
            await self._leases.release(fence)
