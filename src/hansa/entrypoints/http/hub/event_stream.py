"""How does a stream without end get to a reader? As server-sent events, until either side goes.

A reader that does not take anything for long is let go: what waits for it is bounded, but its connection is not free.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hansa.entrypoints.http.protocol import LET_GO

STALL_SECONDS = 30.0
_log = structlog.get_logger("hansa.http")


class EventStream(Response):
    """Sends each piece as it comes; the stream is closed when the reader is gone."""

    def __init__(self, pieces: AsyncIterator[bytes], stall: float = STALL_SECONDS) -> None:
        # Proxies must neither keep it nor wait until it is complete.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(media_type="text/event-stream", headers=headers)
        del self.headers["content-length"]
        self._pieces = pieces
        self._stall = stall

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with contextlib.AsyncExitStack() as stack:
            if hasattr(self._pieces, "aclose"):
                stack.push_async_callback(self._pieces.aclose)
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            tasks = [asyncio.create_task(_gone(receive)), asyncio.create_task(self._pump(send))]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
            if isinstance(ended[1], TimeoutError):
                _log.info("reader let go", path=scope["path"], seconds=self._stall)
                await _let_go(scope, receive)
            elif isinstance(ended[1], Exception):
                raise ended[1]

    async def _pump(self, send: Send) -> None:
        async for piece in self._pieces:
            async with asyncio.timeout(self._stall):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _let_go(scope: Scope, receive: Receive) -> None:
    end: Callable[[], Any] | None = scope.get(LET_GO)
    if end is not None:
        end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):  # the server hears of it a moment later
                await _gone(receive)
