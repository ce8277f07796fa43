"""How do the files of a job move without borrowing anybody's rights? A child walls itself in, then moves them.

The order of the walls matters: network and mounts (while still root) → the user of the folder → nobody may look into
its memory → only the folder's handles → no new privileges → the filter of system calls. What it needs from outside
comes through one channel to the manager, which dials for it: it names a store of its plan by number, never an address.
"""

import json
import os
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from . import child, landlock, linux, network, protocol, seccomp

Move = Callable[[str, bytes, "Channel", int, int], dict[str, Any]]
"""Moves the files of a job: which way, the plan, the channel, handles of the job's and the mounted folder (or -1)."""

_OPEN_FILES = 256
_MEMORY = 512 * 2**20  # 30 MiB is usual; names of 100,000 files of a mounted folder take 200 MiB at most
_FIRST_USER = 1000  # below are the machine's own
_FAILED = 126


class Lost(ConnectionError):
    """The manager does not hear us any more."""


class Channel:
    """The child's only way out."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def order(self) -> tuple[str, bytes]:
        """Which way, and the plan. It comes as a file without a name, for it may be large."""
        message, fds = self._heard()
        with open(fds[0], "rb") as file:
            file.seek(0)
            return message["way"], file.read()

    def say(self, level: str, text: str) -> None:
        self._send({"say": [level, text[:4096]]})

    def dial(self, store: int) -> tuple[socket.socket | None, str, bool]:
        self._send({"dial": store})
        message, fds = self._heard()
        if fds:
            return socket.socket(fileno=fds[0]), "", False
        return None, message["error"], message["temporary"]

    def sign(
        self, store: int, method: str, bucket: str, key: str, query: Mapping[str, str], payload: str
    ) -> dict[str, str] | None:
        self._send({"sign": [store, method, bucket, key, dict(query), payload]})
        message, _ = self._heard()
        headers: dict[str, str] | None = message["headers"]
        return headers

    def end(self, told: dict[str, Any]) -> None:
        with open(os.memfd_create("told"), "w+b") as file:
            file.write(json.dumps(told).encode())
            file.flush()
            self._send({"end": True}, [file.fileno()])

    def _send(self, message: protocol.Message, fds: list[int] | None = None) -> None:
        try:
            protocol.send(self._socket, protocol.encode(message), fds or ())
        except OSError as error:
            raise Lost from error

    def _heard(self) -> tuple[protocol.Message, list[int]]:
        message, fds = protocol.receive(self._socket)
        if message is None:
            raise Lost
        return message, fds


def run(setting: child.Setting, move: Move, connected: socket.socket, folders: list[int]) -> NoReturn:
    """The whole life of a forked child, which never returns."""
    try:
        child.stand_alone(setting, keep={connected.fileno(), *folders})
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)  # an error says more
        _wall_in(setting, folders)
        channel = Channel(connected)
        way, plan = channel.order()
        channel.end(_moved(move, way, plan, channel, folders))
        os._exit(0)
    except Lost:
        os._exit(0)
    finally:
        os._exit(_FAILED)


def _moved(move: Move, way: str, plan: bytes, channel: Channel, folders: list[int]) -> dict[str, Any]:
    try:
        return move(way, plan, channel, folders[0], folders[1] if len(folders) > 1 else -1)
    except MemoryError:  # by now it is free again
        return {"failed": f"moving its files needed more memory than {_MEMORY >> 20} MiB: move fewer of them"}


def _wall_in(setting: child.Setting, folders: list[int]) -> None:
    level = setting.level
    if setting.root:
        owner = os.fstat(folders[0])
        if owner.st_uid < _FIRST_USER:
            raise PermissionError("the folder belongs to no job")
        linux.unshare(linux.CLONE_NEWNET | linux.CLONE_NEWNS | linux.CLONE_NEWIPC)
        linux.become(owner.st_uid, owner.st_gid)
    elif level.filesystem == "bwrap":
        network.enter_own_user_namespace(linux.CLONE_NEWNS | linux.CLONE_NEWIPC)
    linux.hide_memory()  # after the maps of a user namespace: /proc/self is root's from here on
    linux.die_with_parent(signal.SIGKILL)
    if os.getppid() != setting.launcher:
        os._exit(_FAILED)
    child.limit_files(_OPEN_FILES)
    child.limit_memory(_MEMORY)
    linux.no_new_privileges()
    if landlock.abi():
        landlock.restrict((), folders, (), tcp=False)
    if level.seccomp and (program := seccomp.program()) is not None:
        linux.install_seccomp(program)
