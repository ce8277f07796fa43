"""How much do jobs hold, on disk and in memory, where the kernel limits neither? One process of its own looks.

Not the launcher itself: a million small files take seconds to look at, and jobs must start and end meanwhile. A job
that is found to hold too much is ended, so the limit is soft: what comes between two looks comes on top.
"""

import os
import select
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from . import child, memory, processes, protocol, usage

_FASTEST, _SLOWEST = 0.1, 5.0  # seconds between two looks at one job
_REST = 4  # times as long as a look took: it never uses more than a fifth of a processor
_SLACK = 2**20
_GENEROUS = 64 * 2**20
_NICE = 5
_AGAIN = 0.1  # seconds
_MOST_FAILURES = 3  # in a row: a machine may be short of something for a moment


class Gauges:
    """The launcher's side."""

    def __init__(
        self, setting: child.Setting, events: selectors.BaseSelector, too_much: Callable[[str, protocol.Reason], None]
    ) -> None:
        self._setting = setting
        self._events = events
        self._too_much = too_much
        self._jobs: dict[str, protocol.Message] = {}
        self._channel: socket.socket | None = None
        self._pid = 0
        self.due = float("inf")
        """When to try again to start the one who looks."""

    def begin(self, id: str, pid: int, watched: list[tuple[str, int, bool]], most_memory: int) -> None:
        """`most_memory` is 0 where a cgroup sees to it."""
        if watched or most_memory:
            self._jobs[id] = {"begin": id, "pid": pid, "watched": watched, "memory": most_memory}
            self._tell(self._jobs[id])

    def end(self, id: str) -> None:
        if self._jobs.pop(id, None) is not None:
            self._tell({"end": id})

    def ended(self, pid: int) -> None:
        """A process of ours is gone: if it was the one that looks, another takes over."""
        if pid == self._pid:
            self._pid = 0
            self.close()
            self._tell_all()

    def tick(self) -> None:
        if time.monotonic() >= self.due:
            self._tell_all()

    def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            self._events.unregister(channel)
            channel.close()

    def _tell_all(self) -> None:
        self.due = float("inf")
        for told in self._jobs.values():
            self._tell(told)

    def _tell(self, message: protocol.Message) -> None:
        if self._channel is None and not self._pid:
            try:
                self._start()
            except OSError:  # no room for another process just now: then its successor hears all
                self.due = time.monotonic() + _AGAIN
        if self._channel is None:
            return  # it has died: `ended` comes next, and tells all of it to its successor
        try:
            protocol.send(self._channel, protocol.encode(message))
        except OSError:
            self.close()

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self._pid = os.fork()
            except OSError:
                ours.close()
                raise
            if self._pid == 0:
                _look(self._setting, theirs)
        ours.settimeout(_SLOWEST)
        try:
            self._events.register(ours, selectors.EVENT_READ, self._hear)
        except OSError:
            ours.close()  # it ends with that
            raise
        self._channel = ours

    def _hear(self) -> None:
        if self._channel is None:
            return  # closed since it was found to be readable
        message, _ = protocol.receive(self._channel)
        if message is None:
            self.close()
        elif message["id"] in self._jobs:
            self._too_much(message["id"], message["reason"])


@dataclass
class _Watched:
    """One job, as the process that looks knows it."""

    pid: int
    folders: list[tuple[str, int, bool]]
    memory: int
    scratch: bool  # it has file systems of memory
    most: dict[str, int] = field(default_factory=dict)  # of shared folders, which may have held more before
    due: float = 0.0
    failures: int = 0

    def judge(self) -> protocol.Reason | None:
        """Whether to end it. A job that cannot be looked at works against us; the others are looked at all the same."""
        try:
            found = self._holds_too_much()
        except MemoryError:
            return None  # our own trouble
        except Exception as error:
            if isinstance(error, OSError) and error.errno in usage.OWN_TROUBLE:
                return None
            self.failures += 1
            if self.failures < _MOST_FAILURES:
                return None
            return "disk" if self.folders else "oom"
        self.failures = 0
        return found

    def _holds_too_much(self) -> protocol.Reason | None:
        living = self._processes()
        if self.memory and memory.exceeds(living, self.memory, scratch=self.scratch):
            return "oom"
        if not self.folders:
            return None
        loose = usage.unlinked(living, {device for device in map(_device, self._names()) if device})
        for number, (folder, size, shared) in enumerate(self.folders):
            most = self._most(folder, size) if shared else size
            # files without a name may be of any folder, and count with the job's own
            if loose * (number == 0) + usage.of_folder(folder, most) > most:
                return "disk"
        return None

    def _most(self, folder: str, size: int) -> int:
        """Somebody who comes to make room in a full volume is not ended for what others wrote; within reason."""
        if folder not in self.most:
            held = usage.of_folder(folder, size + size // 10 + _GENEROUS)
            self.most[folder] = size if held > size + size // 10 + _GENEROUS else max(size, held + _SLACK)
        return self.most[folder]

    def _names(self) -> list[str]:
        return [folder for folder, _, _ in self.folders]

    def _processes(self) -> set[int]:
        return processes.descendants(self.pid) | {self.pid} | processes.of_session(self.pid)


def _look(setting: child.Setting, channel: socket.socket) -> NoReturn:
    """The whole life of a forked child, which never returns."""
    try:
        child.stand_alone(setting, keep={channel.fileno()})
        os.nice(_NICE)
        jobs: dict[str, _Watched] = {}
        while True:
            pause = min((job.due for job in jobs.values()), default=None)
            wait = None if pause is None else max(0.0, pause - time.monotonic())
            if select.select([channel], [], [], wait)[0]:
                message, _ = protocol.receive(channel)
                if message is None:
                    os._exit(0)
                if "end" in message:
                    jobs.pop(message["end"], None)
                else:
                    scratch = setting.level.filesystem == "bwrap"
                    told = message["pid"], message["watched"], message["memory"], scratch
                    jobs[message["begin"]] = _Watched(*told)
                continue
            for id, job in jobs.items():
                began = time.monotonic()
                if job.due > began:
                    continue
                if (reason := job.judge()) is not None:
                    protocol.send(channel, protocol.encode({"id": id, "reason": reason}))
                now = time.monotonic()
                job.due = now + min(max(_FASTEST, _REST * (now - began)), _SLOWEST)
    finally:
        os._exit(1)


def _device(folder: str) -> int:
    try:
        return os.stat(folder).st_dev
    except OSError:
        return 0
