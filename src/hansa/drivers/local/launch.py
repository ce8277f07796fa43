"""What is asked of a sandbox, and what comes back? Plain values; `sandbox.py` does the work."""

import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hansa.drivers.local.launcher.protocol import MOST_DISKS, Ceiling, Level, LevelName, Network, Order, Reason
from hansa.kernel.errors import HansaError, Invalid, Kind, Temporary

__all__ = [
    "Bind",
    "CallOff",
    "Ceiling",
    "Device",
    "Exit",
    "Launch",
    "LaunchFailed",
    "LaunchInvalid",
    "Level",
    "LevelName",
    "Network",
    "PortUnreachable",
    "SandboxLost",
    "SandboxRefused",
    "Watched",
]

CallOff = Callable[[], Awaitable[None]]
"""Ends a child that moves files, whether it is done or not."""
_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")


class SandboxRefused(HansaError):
    """The launcher of local jobs does not start."""

    code, kind = "sandbox.refused", Kind.CONFLICT


class SandboxLost(Temporary):
    """The launcher of local jobs has died; it can be opened again."""

    code = "sandbox.lost"


class LaunchFailed(HansaError):
    """The sandbox of a job could not be built."""

    code, kind = "sandbox.launch-failed", Kind.INTERNAL


class LaunchInvalid(Invalid):
    """What the job asks of its sandbox cannot be."""

    code = "sandbox.launch-invalid"


class PortUnreachable(Temporary):
    """Nothing answers on that port of the job, or not yet."""

    code = "sandbox.port-unreachable"


@dataclass(frozen=True, slots=True)
class Bind:
    """A directory or file of ours that a job sees under another name."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Device:
    """A file system that is mounted for one job alone, at a folder that its workdir or binds lead through."""

    handle: int
    folder: Path


@dataclass(frozen=True, slots=True)
class Watched:
    """A folder that may hold so many bytes. `shared`: what it held before the job is not the job's doing."""

    folder: Path
    size: int
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """One program to run, with its limits and all it may see."""

    id: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    workdir: Path
    """Seen as /job. The job owns it, with everything in it, from its start on."""
    cpu: int
    """Thousandths of a processor."""
    memory: int
    """Bytes, of programs and of files in the private /tmp and /dev/shm together; under cgroups at least 8 MiB."""
    seconds: float = math.inf
    """Of wall time, from the start or from `release`; then the job is killed."""
    pids: int = 256
    network: Network = "none"
    """none: unreachable. own: its own loopback, any port, reachable by `dial`. host: that of the machine."""
    binds: tuple[Bind, ...] = ()
    group: int | None = None
    """The gid of volumes shared with others: what the job creates is theirs too (umask 007). Root only."""
    hold: bool = False
    """Build everything, but run the program only when `release` is called."""
    disk: int = 0
    """Bytes it may write to its workdir and other folders of its own; 0 is no limit."""
    largest_file: int = 0
    """Bytes that one file may have; 0 is no limit."""
    devices: tuple[Device, ...] = ()
    watched: tuple[Watched, ...] = ()
    """Folders without a limit of their own: the job is ended when one holds too much. Seen some moments later."""

    def order(self) -> Order:
        """As the launcher wants it; refuses what could never run."""
        if not _ID.fullmatch(self.id):  # it names directories
            raise LaunchInvalid(f"{self.id!r} is no id of a job", hint="small letters, digits and dashes")
        for bind in self.binds:
            if not bind.target.startswith("/") or ".." in bind.target.split("/") or bind.target == "/":
                raise LaunchInvalid(f"job {self.id}: nothing can be bound to {bind.target!r}")
        if not self.argv or not self.argv[0]:
            raise LaunchInvalid(f"job {self.id} names no program")
        if self.cpu <= 0 or self.memory <= 0 or self.pids <= 0 or not self.seconds > 0:
            raise LaunchInvalid(f"job {self.id} asks for a limit of nothing", hint="limits are greater than 0")
        if any("\0" in text for pair in self.env.items() for text in pair) or any("\0" in a for a in self.argv):
            raise LaunchInvalid(f"job {self.id} has a zero byte in its arguments or environment")
        if len(self.devices) > MOST_DISKS:
            raise LaunchInvalid(f"job {self.id} has more than {MOST_DISKS} disks")
        return Order(
            id=self.id,
            argv=list(self.argv),
            env=dict(self.env),
            workdir=str(self.workdir.absolute()),
            cpu=self.cpu,
            memory=self.memory,
            seconds=self.seconds,
            pids=self.pids,
            network=self.network,
            binds=[(str(bind.source.absolute()), bind.target, bind.read_only) for bind in self.binds],
            group=self.group,
            hold=self.hold,
            largest_file=self.largest_file,
            disks=[str(device.folder.absolute()) for device in self.devices],
            watched=[(str(one.folder.absolute()), one.size, one.shared) for one in self.watched],
        )


@dataclass(frozen=True, slots=True)
class Exit:
    """How a job ended.

    `code` is None when we killed it; 128 + n when signal n did. `reason` says more than the code: where
    memory ran out, v1 cgroups kill one process only, and the program may still end with 0. A job that was
    asked to stop ends as `stopped`, with its own code if it went within the grace.
    """

    code: int | None
    reason: Reason
    seconds: float
    cpu_seconds: float | None
