"""What do the manager and its launcher say to each other?

One JSON object per packet of a SOCK_SEQPACKET socket pair, file descriptors attached. Both sides import this
module: the manager as part of the package, the launcher alone. The order of talk:

    launcher → ready(level) | refused(reason, hint)
    manager  → start(order) + output pipe, disks      launcher → started(id) | failed(id, error)
    manager  → release, stop, kill (id)         launcher → ended(id, code, reason, …), once per started job
    manager  → dial(call, id, port, timeout)    launcher → dialled(call) + socket | undialled(call, error)
    manager  → stage(call, tls) + channel, folders; unstage(call)      the channel's other end tells the rest
"""

import array
import json
import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Message = dict[str, Any]
LevelName = Literal["full", "namespaces", "landlock", "process"]
Network = Literal["none", "own", "host"]
Reason = Literal["exit", "oom", "disk", "timeout", "stopped", "killed", "lost"]

LARGEST_PACKET = 192 * 1024  # stays below the default send buffer of every kernel we met
UIDS_PER_INSTANCE = 256
_RECEIVED_AT_MOST = LARGEST_PACKET + 4096  # an order is passed on with a few words around it
MOST_DISKS = 4
_MOST_FDS = 4 + MOST_DISKS


@dataclass(frozen=True, slots=True)
class Level:
    """How well this machine can isolate a job, and by which means."""

    name: LevelName
    filesystem: Literal["bwrap", "landlock", "none"]
    limits: Literal["cgroup-v2", "cgroup-v1", "rlimits"]
    kill: Literal["cgroup", "freezer", "pidns", "uid", "group"]
    uid: Literal["per-job", "shared"]
    network: Literal["netns", "no-tcp", "shared"]
    nested_userns: bool
    seccomp: bool
    landlock_abi: int = 0

    @property
    def walks(self) -> bool:
        """Whether a job comes to its folders by their real paths, as a user that does not own what lies above."""
        return self.filesystem != "bwrap" and self.uid == "per-job"

    def inside(self, source: str, target: str = "/job") -> str:
        """The path by which a job sees a directory of ours: only a mount namespace can rename it."""
        return target if self.filesystem == "bwrap" else source


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most the launcher may use, even if the machine offers more."""

    level: LevelName = "full"
    cgroups: bool = True
    user: int | None = None  # give up root for this uid at start


@dataclass(frozen=True, slots=True)
class Config:
    """How a launcher is started."""

    instance: str
    uid_base: int
    run_dir: str
    probe: bool = False  # only look and report
    ceiling: Ceiling = Ceiling()
    jobs: bool = True  # False: no lock and no sweep; whoever runs under its uids is somebody else's

    def to_json(self) -> str:
        ceiling = {name: getattr(self.ceiling, name) for name in Ceiling.__slots__}
        return json.dumps({name: getattr(self, name) for name in Config.__slots__} | {"ceiling": ceiling})

    @classmethod
    def from_json(cls, text: str) -> "Config":
        fields = json.loads(text)
        return cls(**fields | {"ceiling": Ceiling(**fields["ceiling"])})


@dataclass(frozen=True, slots=True)
class Order:
    """One job as the launcher sees it; `Launch` in the manager explains the fields."""

    id: str
    argv: list[str]
    env: dict[str, str]
    workdir: str
    cpu: int
    memory: int
    seconds: float
    pids: int
    network: Network
    binds: list[tuple[str, str, bool]]  # source, target, read-only
    group: int | None
    hold: bool
    largest_file: int = 0
    disks: list[str] = field(default_factory=list)  # where the devices that came along are mounted
    watched: list[tuple[str, int, bool]] = field(default_factory=list)  # folder, bytes, shared


def fields(record: Level | Order) -> Message:
    """A flat record as a message body (`dataclasses.asdict` would copy deeply for nothing)."""
    return {name: getattr(record, name) for name in type(record).__slots__}


def encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def send(channel: socket.socket, packet: bytes, fds: Sequence[int] = ()) -> None:
    attached = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    channel.sendmsg([packet], attached, socket.MSG_NOSIGNAL)


def receive(channel: socket.socket) -> tuple[Message | None, list[int]]:
    """The next message and its file descriptors, all or none; None when the other side is gone.

    Not `socket.recv_fds`: that one ignores its flags, and descriptors would be inheritable for a moment.
    """
    room = socket.CMSG_SPACE(_MOST_FDS * array.array("i").itemsize)
    try:
        packet, ancillary, flags, _ = channel.recvmsg(_RECEIVED_AT_MOST, room, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:  # the other side died with our packets unread
        return None, []
    received = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            received.frombytes(data[: len(data) - len(data) % received.itemsize])
    if flags & socket.MSG_CTRUNC or not packet:  # we had no room for all of them, and some are no use
        close(received)
        received = array.array("i")
    try:
        return (json.loads(packet) if packet else None), list(received)
    except BaseException:
        close(received)
        raise


def close(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
