"""How does a job start fast? A child that has joined its cgroup already waits for the next order.

Joining costs the kernel about ten milliseconds, in which it waits for every processor to take note. Done ahead,
nobody waits for it.
"""

import contextlib
import os
import signal
import socket
import time

from . import cgroups, child, processes, protocol

_PATIENCE = 1.0


class Spare:
    """A process that will become a job, in the cgroup of that job."""

    def __init__(self, setting: child.Setting, tree: cgroups.Tree | None, number: int) -> None:
        self.group = cgroups.Group(tree, f"job-{number}") if tree is not None else None
        with contextlib.ExitStack() as undone:
            if self.group is not None:
                undone.callback(self.group.remove)
                self.group.create()
            self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                undone.callback(self._orders.close)
                self._orders.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * protocol.LARGEST_PACKET)
                self.pid = os.fork()
                if self.pid == 0:
                    child.run(setting, self.group, theirs)
            undone.pop_all()

    def employ(self, order: protocol.Order, uid: int, fds: child.Descriptors) -> None:
        """Let it become that job, under the limits of that job. The folder is the job's once the job has started."""
        if self.group is not None:
            self.group.limit(memory=order.memory, cpu=order.cpu, pids=order.pids)
        message = protocol.encode({"order": protocol.fields(order), "uid": uid})
        protocol.send(self._orders, message, [fds.output, fds.failure, *(fds.gate or ()), *fds.disks])
        self._orders.close()

    def discard(self) -> None:
        """End it, employed or not, and leave nothing of it."""
        self._orders.close()
        processes.signal_process(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        patience = time.monotonic() + _PATIENCE
        while self.group is not None and not self.group.remove() and time.monotonic() < patience:
            time.sleep(0.001)
