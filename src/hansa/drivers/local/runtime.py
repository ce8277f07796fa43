"""What do the hosts need from whatever runs a process? One small protocol, fulfilled twice.

`HostRuntime` runs the script in this machine's own userland by way of `sandbox.py`; `podman.py` runs it in
the image that the service names. The hosts (`job_host.py`, `sync_host.py`, `exposed_host.py`) know only
this page.
"""

import asyncio
import contextlib
import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol

import structlog

from hansa.drivers.local.launch import CallOff, Ceiling, Exit, Launch, Level
from hansa.drivers.local.sandbox import Sandbox

_log = structlog.get_logger("hansa.jobs")
_KILL_SECONDS = 15.0


class Process(Protocol):
    """One started process tree."""

    def output(self) -> AsyncIterator[bytes]:
        """What it prints, stderr included, until its end. Unread, it waits at a full pipe."""
        ...

    async def release(self) -> None:
        """Lets a held process go."""
        ...

    async def wait(self) -> Exit: ...
    async def stop(self, grace: float) -> None: ...
    async def kill(self) -> None: ...
    async def dial(self, port: int, timeout: float) -> socket.socket: ...


class Runtime(Protocol):
    """Where scripts run."""

    images: bool
    """Whether a service's image means anything here."""

    async def start(self, launch: Launch, image: str) -> Process: ...
    async def stage(self, channel: socket.socket, folders: Sequence[int], tls: Sequence[bool]) -> CallOff:
        """A child that moves files between these folders and the stores it is told of over the channel."""
        ...

    def inside(self, source: Path, target: str) -> str:
        """The path by which a script sees `source`, bound to `target`."""
        ...

    async def close(self) -> None:
        """Ends everything it started."""
        ...


class HostRuntime:
    """Scripts in this machine's own userland; the image is not looked at.

    A launcher that died is replaced at the next start: what ran under it has ended as `lost` by then.
    """

    images = False

    def __init__(self, sandbox: Sandbox, open_again: Callable[[], Awaitable[Sandbox]]) -> None:
        self._sandbox = sandbox
        self._open_again = open_again
        self._turn = asyncio.Lock()

    @classmethod
    async def open(
        cls, *, instance: str, uid_base: int, run_dir: Path, ceiling: Ceiling | None = None, jobs: bool = True
    ) -> "HostRuntime":
        """Without `jobs` it only moves files: those who run under its users are somebody else's."""

        async def fresh() -> Sandbox:
            return await Sandbox.open(instance=instance, uid_base=uid_base, run_dir=run_dir, ceiling=ceiling, jobs=jobs)

        return cls(await fresh(), fresh)

    @property
    def level(self) -> Level:
        """How strongly jobs are kept apart."""
        return self._sandbox.level

    async def start(self, launch: Launch, image: str) -> Process:
        return await (await self._standing()).start(launch)

    async def stage(self, channel: socket.socket, folders: Sequence[int], tls: Sequence[bool]) -> CallOff:
        return await (await self._standing()).stage(channel, folders, tls)

    async def _standing(self) -> Sandbox:
        async with self._turn:
            if self._sandbox.lost.is_set():
                await self._replace(self._sandbox)
            return self._sandbox

    async def _replace(self, lost: Sandbox) -> None:
        await lost.close()  # it may have let go of us and not have ended
        self._sandbox = await self._open_again()
        _log.warning(
            "the launcher of local jobs ended by itself and was replaced; its jobs are lost",
            pid=lost.launcher_pid,
            exit_code=lost.exit_code,
        )

    def inside(self, source: Path, target: str) -> str:
        return self._sandbox.level.inside(str(source), target)

    @property
    def launcher_pid(self) -> int:
        return self._sandbox.launcher_pid

    async def close(self) -> None:
        await self._sandbox.close()


async def follow(process: Process, hear: Callable[[bytes], None], most: float = math.inf) -> Exit:
    """Hears a process to its end; one that prints more than `most` bytes a second waits. Cancelled, it ends the process
    first."""
    try:
        async for chunk in process.output():
            hear(chunk)
            await asyncio.sleep(len(chunk) / most)  # or 0: it is always readable; the others want their turn too
        return await process.wait()
    except BaseException:
        await put_down(process)
        raise


async def put_down(process: Process) -> None:
    """Kills the whole tree and waits, not for ever, until it is gone."""
    await process.kill()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_KILL_SECONDS):
            await process.wait()
