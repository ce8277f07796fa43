"""How does a manager end when the playground is killed? This small program stands between the two.

`member.py` runs it as a script of its own, with the standard library only. It ends the manager as soon as standard
input closes, which the kernel does however the playground died, and keeps the manager's output in a bounded log.
Should this program itself be killed, the kernel kills the manager; whatever a manager started ends with it.

    lifeline.py LOG LOG_BYTES GRACE_SECONDS COMMAND…      prints the command's process id, exits as it does
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PIECE = 65536


class Log:
    """The newest output: this file and one older part, each half of the limit."""

    def __init__(self, path: str, limit: int) -> None:
        self._path, self._half = path, limit // 2
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - open as long as the program lives

    def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk must not stop a manager
            if self._file.tell() + len(data) > self._half:
                os.replace(self._path, f"{self._path}.1")
                self._file.close()
                self._file = open(self._path, "ab", buffering=0)  # noqa: SIM115
            self._file.write(data)


def run(log: Log, grace: float, command: list[str]) -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # the playground alone decides; unlike SIG_IGN this is not inherited
    output, inlet = os.pipe()
    # Files that were handed to us on purpose, such as the playground's lock, go on to the manager.
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=inlet,
        stderr=inlet,
        close_fds=False,
        preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 - this process has one thread
    )
    os.close(inlet)
    print(child.pid, flush=True)
    lifeline, ended = sys.stdin.fileno(), os.pidfd_open(child.pid)
    watched = {lifeline, output, ended}
    give_up = float("inf")
    while child.poll() is None:
        wait = None if give_up == float("inf") else max(0.0, give_up - time.monotonic())
        ready, _, _ = select.select(watched, [], [], wait)
        if output in ready and not _keep(output, log):
            watched.discard(output)
        if lifeline in ready and not os.read(lifeline, _PIECE):
            watched.discard(lifeline)
            child.terminate()
            give_up = time.monotonic() + grace
        if time.monotonic() >= give_up:
            child.kill()
    os.set_blocking(output, False)
    with contextlib.suppress(BlockingIOError):  # a child of the manager may still hold the other end
        while _keep(output, log):
            pass
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _keep(output: int, log: Log) -> bool:
    data = os.read(output, _PIECE)
    log.write(data)
    return bool(data)


def _die_with(parent: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None)

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the kernel was asked
            os._exit(1)

    return ask


if __name__ == "__main__":
    path, limit, grace_seconds, *words = sys.argv[1:]
    sys.exit(run(Log(path, int(limit)), float(grace_seconds), words))
