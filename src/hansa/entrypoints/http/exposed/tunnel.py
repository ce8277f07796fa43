"""How do the bytes of a WebSocket get from a visitor to a tenant's process and back? As they come, unread.

Whoever reads messages has to keep them until they are complete, and pays for each of ten thousand tiny ones. So the
manager reads the handshake alone: what follows is the business of the two ends. Of each direction no more is in memory
than one read, and whoever does not take what was sent is waited for, but not for ever.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

TUNNEL = "hansa.tunnel"  # in the scope: the `TunnelProtocol` of this visitor
_READ = 64 * 1024
_LEAVE = 10.0  # seconds


class TunnelProtocol(WebSocketsSansIOProtocol):
    """A visitor's connection, from its wish to become a WebSocket on."""

    _passes = False  # the bytes are not ours to read any more
    _arrived: bytes = b""
    _moved = 0.0  # when a byte last went either way

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._news = asyncio.Event()

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if self.handshake_initiated and not self.handshake_complete:
            cast(dict[str, Any], self.scope)[TUNNEL] = self

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:
            super().data_received(data)
            return
        self._arrived += data  # at most what was read before the pause began
        self.transport.pause_reading()
        self._news.set()

    def eof_received(self) -> None:
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._news.set()

    def shutdown(self) -> None:
        if self._passes:
            self.transport.close()
        else:
            super().shutdown()

    async def pass_on(
        self, answer: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, idle: float
    ) -> None:
        """Tells the visitor `answer`, the end of the handshake; then lets everything through until either side goes, or
        nothing has moved for so many seconds."""
        self._passes = self.handshake_complete = True
        self._moved = self.loop.time()
        self.transport.write(answer)
        ways = [self._inward(writer), self._outward(reader), self._until_idle(idle)]
        tasks = [asyncio.create_task(way, name=f"tunnel {self.scope['path'][:100]}") for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.transport.close()  # the rest of what was said is sent, if anybody takes it
            self.loop.call_later(_LEAVE, self.transport.abort)

    async def _inward(self, writer: asyncio.StreamWriter) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            data, self._arrived = self._arrived, b""
            writer.write(data)
            await writer.drain()
            self._moved = self.loop.time()
            if self.disconnected:
                return
            self.transport.resume_reading()

    async def _outward(self, reader: asyncio.StreamReader) -> None:
        while (data := await reader.read(_READ)) and not self.disconnected:
            self.transport.write(data)
            await self.writable.wait()
            self._moved = self.loop.time()

    async def _until_idle(self, seconds: float) -> None:
        while (left := self._moved + seconds - self.loop.time()) > 0:
            await asyncio.sleep(left)
