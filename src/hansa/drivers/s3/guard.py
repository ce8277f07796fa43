"""How does a server die with its manager, even by SIGKILL? This small program stands between the two.

`seaweed.py` runs it as a script of its own, with the standard library only. It starts the command, keeps the
command's output in a bounded log, and ends it as soon as standard input closes: the kernel closes that pipe
however the manager dies. Should the guard itself be killed, the kernel kills the command (Linux; it is
asked by the guard's one and only thread, so the request cannot lapse early, as it would from a manager's
thread pool).

    guard.py LOG LOG_BYTES GRACE_SECONDS KEPT_FD LEFTOVERS COMMAND…

prints the command's process id, exits as the command does, and takes away the files that the command leaves behind
(LEFTOVERS, joined by ":").
"""

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


class BoundedLog:
    """Appends to a file and keeps one older part, together never above `limit` bytes."""

    def __init__(self, path: str, limit: int) -> None:
        self._path, self._half = path, max(limit // 2, 4096)
        self._open()

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size

    def write(self, data: bytes) -> None:
        """In pieces that one part can hold: a server that prints much is read in larger ones."""
        for start in range(0, len(data), self._half):
            self._append(data[start : start + self._half])

    def _append(self, data: bytes) -> None:
        if self._size + len(data) > self._half:
            os.close(self._file)
            os.replace(self._path, self._path + ".1")
            self._open()
        with contextlib.suppress(OSError):  # a full disk must not stop the server
            os.write(self._file, data)
        self._size += len(data)


def _die_with_parent() -> Callable[[], None]:
    if not sys.platform.startswith("linux"):
        return lambda: None
    libc, guard = ctypes.CDLL(None, use_errno=True), os.getpid()

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # the guard died before the kernel was asked
            os._exit(1)

    return ask


def guard(log: BoundedLog, grace: float, kept_fd: int, command: list[str]) -> int:
    wake_read, wake_write = os.pipe()
    for end in (wake_read, wake_write):
        os.set_blocking(end, False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(kept_fd,),
        preexec_fn=_die_with_parent(),  # noqa: PLW1509 - this process has one thread
    )
    assert child.stdout is not None
    print(child.pid, flush=True)
    sources = selectors.DefaultSelector()
    for source in (sys.stdin.fileno(), child.stdout.fileno(), wake_read):
        sources.register(source, selectors.EVENT_READ)

    give_up: float | None = None  # when the command has had its time to end
    while child.poll() is None:
        if give_up is not None and time.monotonic() >= give_up:
            child.kill()
        wait = None if give_up is None else max(0.01, give_up - time.monotonic())
        for ready, _ in sources.select(wait):
            data = os.read(ready.fd, 65536)
            if ready.fd == child.stdout.fileno() and data:
                log.write(data)
            stop = (ready.fd == sys.stdin.fileno() and not data) or (ready.fd == wake_read and signal.SIGTERM in data)
            if stop and give_up is None:
                child.terminate()
                give_up = time.monotonic() + grace
            if not data:  # closed: it would be ready for ever
                sources.unregister(ready.fd)
    os.set_blocking(child.stdout.fileno(), False)
    with contextlib.suppress(BlockingIOError):
        while data := os.read(child.stdout.fileno(), 65536):
            log.write(data)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    path, limit, grace_seconds, fd, leftovers, *words = sys.argv[1:]
    code = guard(BoundedLog(path, int(limit)), float(grace_seconds), int(fd), words)
    for leftover in filter(None, leftovers.split(":")):
        with contextlib.suppress(OSError):
            os.unlink(leftover)
    sys.exit(code)
