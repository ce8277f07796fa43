"""Access tokens that are still good, and one errand at a time for each that is not.

An errand runs in a task of its own: whoever asked may go away (a request was cut), but a refresh token that the issuer
has just replaced must still be written down.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hansa.kernel.clock import Clock

_MOST = 10_000
_SHARE = 0.2  # of a short life that is kept as a reserve


@dataclass(frozen=True, slots=True)
class Access:
    """What is shown to peers: whose it is, they read in it."""

    token: str = field(repr=False)
    expires: float
    life: float  # seconds it had when it came

    @property
    def authorization(self) -> str:
        return f"Bearer {self.token}"


class FreshTokens:
    def __init__(self, clock: Clock, skew: float) -> None:
        self._clock = clock
        self._skew = skew  # seconds before its end from which a token is not shown any more
        self._good: dict[str, Access] = {}
        self._errands: dict[str, asyncio.Task[Access]] = {}

    def known(self, key: str) -> Access | None:
        """The token under this key, if it lasts long enough to be of use."""
        access = self._good.get(key)
        if access is None:
            return None
        reserve = min(self._skew, access.life * _SHARE)
        return access if self._clock.now() < access.expires - reserve else None

    async def get(self, key: str, fetch: Callable[[], Awaitable[Access]], *, anew: bool = False) -> Access:
        """The token under this key; fetched once for all who ask meanwhile. `anew`: even if there is a good one."""
        if not anew and (access := self.known(key)) is not None:
            return access
        errand = self._errands.get(key)
        if errand is None:
            errand = asyncio.create_task(self._fetch(key, fetch), name="fresh access token")
            self._errands[key] = errand
            errand.add_done_callback(lambda done: self._settle(key, done))
        return await asyncio.shield(errand)

    def drop(self, key: str) -> None:
        self._good.pop(key, None)

    async def close(self) -> None:
        """Waits for errands under way: they are bounded in time, and cutting one could lose a rotated token."""
        if self._errands:
            await asyncio.wait(list(self._errands.values()))

    async def _fetch(self, key: str, fetch: Callable[[], Awaitable[Access]]) -> Access:
        access = await fetch()
        if len(self._good) >= _MOST:
            now = self._clock.now()
            self._good = {name: one for name, one in self._good.items() if one.expires > now}
        self._good[key] = access
        return access

    def _settle(self, key: str, done: asyncio.Task[Access]) -> None:
        self._errands.pop(key, None)
        if not done.cancelled():
            done.exception()  # seen, even if everybody who waited has gone
