"""How does a visitor's body reach an exposed service without holding one of its connections while it trickles in?

A body up to a bound is taken in before anybody dials. Of a larger one the first part is, and the rest must keep up a
pace, of which time that the service itself took is no part.
"""

import asyncio
import time
from collections.abc import AsyncIterator

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from hansa.entrypoints.http.wire import BadBody, BodyTooSlow

TAKEN_IN = 64 * 1024  # bytes
AT_ONCE = 0.25  # seconds in which what an honest visitor sent with its head has arrived
PATIENCE = 10.0  # seconds a body may pause in all, beyond what its size needs
PACE = 16 * 1024  # bytes a second
LONGEST = 3600.0  # seconds for one body, however large


class Body:
    """One body on its way in."""

    def __init__(self, receive: Receive, patience: float = PATIENCE) -> None:
        self._receive = receive
        self._patience = patience
        self._first: list[bytes] = []
        self._size = 0
        self._waited = 0.0
        self.is_complete = False

    @property
    def first(self) -> bytes:
        """What has been taken in; all of it if it is complete."""
        return b"".join(self._first)

    async def take_in(self, seconds: float = LONGEST) -> bool:
        """Whether all of it, or the first part of a large one, is here by then. May be called again."""
        try:
            async with asyncio.timeout(seconds):
                while not self.is_complete and self._size < TAKEN_IN:
                    self._first.append(await self._next())
        except TimeoutError:
            return False
        return True

    async def all(self) -> AsyncIterator[bytes]:
        yield self.first
        self._first.clear()
        while not self.is_complete:
            yield await self._next()

    async def _next(self) -> bytes:
        left = min(self._patience + self._size / PACE, LONGEST) - self._waited
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(left, 0.0)):
                message = await self._receive()
        except TimeoutError:
            raise BodyTooSlow(
                f"the body came too slowly: {self._size} bytes so far",
                hint=f"send at least {PACE} bytes a second",
            ) from None
        finally:
            self._waited += time.monotonic() - began
        if message["type"] == "http.disconnect":
            raise BadBody("the body ended before it was complete") from ClientDisconnect()
        chunk: bytes = message.get("body", b"")
        self._size += len(chunk)
        self.is_complete = not message.get("more_body", False)
        return chunk
