"""Whom does a call reach when the launcher was replaced meanwhile, and what does the operator hear of it?"""

import asyncio
import os
import signal
import socket
from pathlib import Path

import pytest
import structlog

from hansa.drivers.local.launch import CallOff
from hansa.drivers.local.runtime import HostRuntime


async def mover(runtime: HostRuntime, folder: Path) -> tuple[socket.socket, CallOff]:
    """A child that waits for its order, and how to end it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        handle = os.open(folder, os.O_RDONLY)
        try:
            call_off = await runtime.stage(theirs, [handle], [])
        finally:
            os.close(handle)
    ours.setblocking(False)
    return ours, call_off


async def gone(channel: socket.socket) -> None:
    assert await asyncio.get_running_loop().sock_recv(channel, 1) == b""


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder is given to somebody else")
async def test_calling_off_a_child_of_a_launcher_that_died_ends_nobody_else(
    runtime: HostRuntime, home: Path, uid_base: int
) -> None:
    folder = home / "folder"
    folder.mkdir()
    os.chown(folder, uid_base, uid_base)
    async with asyncio.timeout(30):
        first, call_off_first = await mover(runtime, folder)
        os.kill(runtime.launcher_pid, signal.SIGKILL)
        await gone(first)
        await runtime._sandbox.lost.wait()
        second, call_off_second = await mover(runtime, folder)
        third, call_off_third = await mover(runtime, folder)
        await call_off_first()
        await call_off_third()
        await gone(third)  # by now the launcher has heard of both
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await gone(second)
        await call_off_second()
        await gone(second)
    for channel in (first, second, third):
        channel.close()


async def test_a_launcher_that_died_is_named_in_the_log_once(runtime: HostRuntime) -> None:
    died = runtime.launcher_pid
    with structlog.testing.capture_logs() as said:
        async with asyncio.timeout(30):
            os.kill(died, signal.SIGKILL)
            await runtime._sandbox.lost.wait()
            for _ in range(2):
                await runtime._standing()
    assert [(one["log_level"], one["pid"], one["exit_code"]) for one in said] == [("warning", died, -signal.SIGKILL)]
