"""A machine that has no room for another process, or for another descriptor, loses none of the jobs that run."""

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hansa.drivers.local.sandbox import LaunchFailed, Watched

from .conftest import Bench, heard, opened

pytestmark = pytest.mark.asyncio(loop_scope="package")
USERS = ("namespaces-user", "landlock-user")  # the kernel refuses root no process
WAITING = "echo up; while [ ! -e go ]; do sleep 0.05; done; echo went on"
MIB = 2**20
UNITS = {"nproc": "processes", "nofile": "files"}


@contextlib.contextmanager
def at_most(bench: Bench, kind: str, number: int) -> Iterator[None]:
    """The launcher has no more of this for a while."""

    def limit(soft: str) -> None:
        """As the launcher's own user, for limits of others are not root's to change everywhere."""
        user = bench.ceiling.user
        who = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        argv = ["prlimit", f"--pid={bench.sandbox.launcher_pid}", f"--{kind}={soft}:"]
        subprocess.run(argv, check=True, **who)  # type: ignore[call-overload]

    limits = Path(f"/proc/{bench.sandbox.launcher_pid}/limits").read_text()
    [before] = [line.split()[-3] for line in limits.splitlines() if line.endswith(UNITS[kind].ljust(10))]
    limit(str(number))
    try:
        yield
    finally:
        limit(before)


def without_processes(bench: Bench) -> contextlib.AbstractContextManager[None]:
    return at_most(bench, "nproc", 0)


def without_descriptors(bench: Bench) -> contextlib.AbstractContextManager[None]:
    return at_most(bench, "nofile", 3)


async def refused_mover(bench: Bench) -> None:
    """The manager hears of it by the end of the connection."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            folder = os.open(bench.home, os.O_RDONLY)
            await bench.sandbox.stage(theirs, [folder], [])
            os.close(folder)
        ours.setblocking(False)
        async with asyncio.timeout(10):
            assert await asyncio.get_running_loop().sock_recv(ours, 1) == b""


async def refused_starts(bench: Bench, times: int) -> None:
    refused = 0
    async with asyncio.timeout(60):
        while refused < times:
            try:
                await (await bench.start("true", workdir=bench.home)).wait()  # one may be ready from before
            except LaunchFailed:
                refused += 1


@pytest.mark.parametrize("name", USERS)
async def test_without_room_for_a_process(name: str, home: Path) -> None:
    async with opened(name, home) as bench:
        folder = bench.directory("goes-on")
        job = await bench.start("sh", "-c", WAITING, workdir=folder, seconds=60)
        with without_processes(bench):
            await refused_mover(bench)
            await refused_starts(bench, 300)  # more often than there are uids
        text, _ = await bench.shell("echo again")
        assert text == "again\n"
        (folder / "go").touch()
        assert await heard(job) == "up\nwent on\n"


@pytest.mark.parametrize("name", ["full", *USERS])
async def test_without_room_for_a_descriptor(name: str, home: Path) -> None:
    async with opened(name, home) as bench:
        folder = bench.directory("goes-on")
        job = await bench.start("sh", "-c", WAITING, workdir=folder, seconds=60)
        ending = await bench.start("sleep", "60", seconds=60)
        with without_descriptors(bench):
            await refused_mover(bench)
            await refused_starts(bench, 3)
            await ending.kill()
            await refused_mover(bench)  # it has heard of the kill by now
        assert (await ending.wait()).reason == "killed"
        (folder / "go").touch()
        assert await heard(job) == "up\nwent on\n"


@pytest.mark.parametrize("name", USERS)
async def test_one_who_looks_is_started_as_soon_as_there_is_room(name: str, home: Path) -> None:
    async with opened(name, home) as bench:
        folder = bench.directory("watched")
        script = "echo up; while [ ! -e go ]; do sleep 0.05; done; head -c 64M /dev/zero > big; sleep 60"
        watched = (Watched(folder, 16 * MIB),)
        job = await bench.start("sh", "-c", script, workdir=folder, watched=watched, seconds=60)
        pid = bench.sandbox.launcher_pid
        with without_processes(bench):
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                if b"launcher.main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    os.kill(int(child), 9)
            await refused_mover(bench)
            await refused_starts(bench, 1)
        (folder / "go").touch()
        assert (await job.wait()).reason == "disk"
