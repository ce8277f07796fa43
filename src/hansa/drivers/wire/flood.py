"""When is an answer a flood, whatever its size? When it takes much more work to read than it has content.

The HTTP library reads 64 KiB at once and hands out all that is in them without letting anybody else have a turn: ten
thousand chunks of one byte, or four thousand interim answers (1xx) before the real one, of which it takes any number.
Sixteen answers of that kind stopped a manager for seconds. So whatever costs a step is counted here, and after some
steps the others have their turn.
"""

import asyncio

import httpx

LONGEST_HEAD = 32 * 1024  # bytes before the answer's content, with all interim answers; managers send some hundred
LEAST = 64  # so many bytes of a head count for each time something came, however little it was
FEW = 2048  # steps that every answer may take: a piece of its content is one, and so is each time something came
USUAL = 256  # bytes of content that earn one more; a packet has five times as many
_IN_A_GO = 32  # steps until others have their turn


class Flood(httpx.RemoteProtocolError):
    """An answer that is made to be laborious."""


class Account:
    """What one answer cost so far."""

    def __init__(self) -> None:
        self._head = 0
        self._steps = 0
        self._size = 0
        self.begun = False  # its head is complete, and what comes is content

    async def came(self, size: int) -> None:
        """So many bytes came over the wire."""
        if not self.begun:
            self._head += max(size, LEAST)
            if self._head > LONGEST_HEAD:
                raise Flood(f"more than {LONGEST_HEAD} bytes came before the answer's content")
        await self._step()

    async def piece(self, size: int) -> None:
        """The library made a piece of content of it."""
        self._size += size
        await self._step()

    async def _step(self) -> None:
        self._steps += 1
        if self._steps > FEW + self._size // USUAL:
            raise Flood(f"the answer came in more than {self._steps - 1} pieces for {self._size} bytes")
        if not self._steps % _IN_A_GO:
            await asyncio.sleep(0)
