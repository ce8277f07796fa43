"""What becomes of one job between its fork and the last trace of it?

    starting → [held →] running → ending (the main process is gone, the rest must go too) → done

Nothing here waits: the loop in `main.py` calls `tick` when `due` has come, or when a process has ended.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass

from . import child, processes, protocol
from .spare import Spare

_TRY_AGAIN = 0.001  # how soon to look again whether the tree is gone
_TRY_AT_MOST = 5.0


@dataclass(frozen=True)
class Ended:
    """How a job ended; `clean` if nothing of it is left."""

    code: int | None
    reason: protocol.Reason
    seconds: float
    cpu_seconds: float | None
    clean: bool


class Job:
    """One started sandbox."""

    def __init__(
        self,
        setting: child.Setting,
        order: protocol.Order,
        spare: Spare,
        uid: int,
        fds: child.Descriptors,
    ) -> None:
        self.id = order.id
        self.network = order.network
        self.uid = uid
        self.held = order.hold
        self._setting = setting
        self._group = spare.group
        self._seconds = order.seconds
        self._overdue: protocol.Reason = "timeout"
        self._reason: protocol.Reason = "exit"
        self._killed = False
        self._status: int | None = None
        self._oom_kills = 0
        self._began = time.monotonic()
        self._gone = 0.0
        self.due = float("inf") if self.held else self._began + self._seconds
        self.pid = spare.pid
        spare.employ(order, uid, fds)

    @property
    def by_cgroup(self) -> bool:
        """Whether the kernel counts what all its processes use together."""
        return self._group is not None

    def release(self) -> None:
        """The clock of a held job starts when it is let go; one that ends already is past that."""
        if self.held and self._status is None and not self._killed:
            self.held = False
            self._began = time.monotonic()
            self.due = self._began + self._seconds

    def stop(self, grace: float) -> None:
        """SIGTERM now, SIGKILL after the grace."""
        if self._status is not None or self._killed:
            return
        self._reason = self._overdue = "stopped"
        if self.held:
            self.kill("stopped")
            return
        self.due = min(self.due, time.monotonic() + grace)
        with contextlib.suppress(OSError):  # it is killed after the grace
            members = self._members()
            if self._setting.level.filesystem == "bwrap":
                members.discard(self.pid)  # the death of bwrap ends all others at once; its pid 1 ignores the signal
            for pid in members:
                processes.signal_process(pid, signal.SIGTERM)

    def kill(self, reason: protocol.Reason) -> None:
        if self._status is not None:
            return  # it ends already: `tick` sees to what is left of it, and not for ever
        if not self._killed:
            self._killed = True
            self._reason = reason
        self.due = time.monotonic() + 1  # again, should this one not have been enough
        self._kill_tree()

    def main_process_ended(self, status: int) -> None:
        self._status = status
        self._gone = self.due = time.monotonic()
        if self._group is not None:
            self._oom_kills = self._group.oom_kills()
        self._kill_tree()  # with the main process everything ends

    def tick(self) -> Ended | None:
        """Do what is due; the end, once nothing is left to do."""
        now = time.monotonic()
        if self._status is None:
            if now >= self.due:
                self.kill(self._overdue)
            return None
        cpu_seconds = self._group.cpu_seconds() if self._group is not None else None
        clean = self._is_gone()
        if not clean and now < self._gone + _TRY_AT_MOST:
            self._kill_tree()
            self.due = now + _TRY_AGAIN
            return None
        reason = "oom" if self._oom_kills and self._reason == "exit" else self._reason
        code = None if self._killed else os.waitstatus_to_exitcode(self._status)
        if code is not None and code < 0:
            code = 128 - code  # as a shell, and bwrap, would say it
        return Ended(code, reason, self._gone - self._began, cpu_seconds, clean)

    def _members(self) -> set[int]:
        """The processes of this job that are known to live."""
        if self._group is not None:
            return self._group.members()
        if self._setting.root:
            return processes.of_uids({self.uid})
        if self._status is None:
            return processes.descendants(self.pid) | {self.pid}
        if self._setting.level.filesystem == "bwrap":
            # a bwrap that dies young leaves its pid 1 behind: it falls to the launcher, as reaper of orphans
            return set(filter(processes.is_namespaced, processes.children(self._setting.launcher)))
        return set()  # who left the process group cannot be found any more

    def _kill_tree(self) -> None:
        if self._status is None:
            processes.signal_process(self.pid)  # it may not have joined its group yet
        with contextlib.suppress(OSError):  # out of descriptors, say: `tick` tries again
            if self._group is not None:
                self._group.kill()
                return
            processes.signal_group(self.pid)
            for pid in self._members():
                processes.signal_process(pid)

    def _is_gone(self) -> bool:
        if self._group is not None:
            return self._group.remove()
        try:
            return not self._members()
        except OSError:
            return False
