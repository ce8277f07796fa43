"""How does the manager hold a started job: hear it, wait for it, stop it, reach it?"""

import asyncio
import os
import socket
import weakref
from collections.abc import AsyncIterator
from typing import Protocol

from hansa.drivers.local.launch import Exit, PortUnreachable
from hansa.drivers.local.launcher.protocol import Message, Network

_CHUNK = 64 * 1024


class Launcher(Protocol):
    """What a process needs from the sandbox that started it."""

    async def tell(self, message: Message) -> None: ...
    async def dial(self, id: str, port: int, timeout: float) -> socket.socket: ...


class Process:
    """A started sandbox. Its output is read on demand: a job that nobody hears waits at a full pipe."""

    def __init__(self, id: str, launcher: Launcher, output: int, *, network: Network, isolated: bool) -> None:
        self.id = id
        self._launcher = launcher
        self._network = network
        self._isolated = isolated
        self._output = output
        self._close_output = weakref.finalize(self, os.close, output)
        self._exit: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    async def output(self) -> AsyncIterator[bytes]:
        """What the job writes, errors included, as it comes; ends when the last of its processes is gone.

        For one reader, once. Nothing is kept here beyond the piece being handed over.
        """
        try:
            while chunk := await self._next_chunk():
                yield chunk
            await self.wait()  # it may close its output and go on
        finally:
            self._close_output()

    async def _next_chunk(self) -> bytes:
        while self._close_output.alive:
            over = self._exit.done()  # asked before reading: what came until then is read first
            try:
                return os.read(self._output, _CHUNK)
            except BlockingIOError:
                if over:  # a daemon that escaped its kill may hold the pipe open for ever
                    break
            await self._readable_or_over()
        return b""

    async def _readable_or_over(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def wake(*_: object) -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(self._output, wake)
        self._exit.add_done_callback(wake)
        try:
            await ready
        finally:
            loop.remove_reader(self._output)
            self._exit.remove_done_callback(wake)

    async def release(self) -> None:
        """Let a job started with `hold` go."""
        await self._launcher.tell({"op": "release", "id": self.id})

    async def wait(self) -> Exit:
        return await asyncio.shield(self._exit)

    async def stop(self, grace: float = 10) -> None:
        """SIGTERM to all its processes now, SIGKILL after the grace; returns when asked."""
        if not self._exit.done():
            await self._launcher.tell({"op": "stop", "id": self.id, "grace": grace})

    async def kill(self) -> None:
        if not self._exit.done():
            await self._launcher.tell({"op": "kill", "id": self.id})

    async def dial(self, port: int, timeout: float = 5) -> socket.socket:
        """A connected, non-blocking TCP socket to 127.0.0.1:port as the job sees it."""
        if self._network == "none":
            raise PortUnreachable(f"job {self.id} has no network", hint="start it with network own or host")
        if self._exit.done():
            raise PortUnreachable(f"job {self.id} has ended")
        if self._network == "own" and self._isolated:
            return await self._launcher.dial(self.id, port, timeout)
        return await _dial_host(self.id, port, timeout)

    def ended(self, exit: Exit) -> None:
        """Called by the sandbox, once."""
        if not self._exit.done():
            self._exit.set_result(exit)


async def _dial_host(id: str, port: int, timeout: float) -> socket.socket:
    connecting = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    connecting.setblocking(False)
    try:
        async with asyncio.timeout(timeout):
            await asyncio.get_running_loop().sock_connect(connecting, ("127.0.0.1", port))
    except (OSError, TimeoutError) as error:
        connecting.close()
        raise PortUnreachable(f"port {port} of job {id}: {str(error) or 'no answer'}") from error
    except BaseException:
        connecting.close()
        raise
    return connecting
