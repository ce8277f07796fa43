"""Managers that are killed and started again all the time: one process has imported what they use, and forks for each.

    with nursery() as born:
        process = born.start({"HANSA_…": "…"}, folder, folder / "manager.log")   # as `hansa server` in that environment
        process.kill()

Most of a manager's start is imports, so this takes a quarter of the time. Each is a process of its own, in a session of
its own; all of them end with the nursery, and it with the tests.
"""

import contextlib
import ctypes
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from real.postgres import tied_to_us

_ROOT = Path(__file__).parents[2]
_READY = "ready"
_PR_SET_PDEATHSIG = 1
STOP_SECONDS = 10.0


@dataclass(slots=True)
class Child:
    """What tests ask of a `subprocess.Popen`. How it ended is not known, only that it did."""

    pid: int
    _handle: int  # names this very process, also when its number is given to another

    def poll(self) -> int | None:
        return 0 if self._ended(0) else None

    def wait(self, timeout: float) -> int:
        if not self._ended(timeout):
            raise subprocess.TimeoutExpired("hansa server", timeout)
        return 0

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def close(self) -> None:
        os.close(self._handle)

    def _ended(self, seconds: float) -> bool:
        asked = select.poll()
        asked.register(self._handle, select.POLLIN)
        return bool(asked.poll(seconds * 1000))


@dataclass(slots=True)
class Nursery:
    _process: subprocess.Popen[str]
    _undo: contextlib.ExitStack

    def start(self, environment: Mapping[str, str], folder: Path, log: Path) -> Child:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"environment": dict(environment), "folder": str(folder), "log": str(log)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline())
        child = Child(pid, os.pidfd_open(pid))  # it is reaped only when it is told so, so the number is still its own
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._undo.callback(child.close)
        return child


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    paths = os.pathsep.join([str(_ROOT / "src"), str(_ROOT / "tests")])
    process = subprocess.Popen(
        [*tied_to_us(), sys.executable, "-m", "real.nursery"],
        env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with contextlib.ExitStack() as undo:
        undo.callback(_end, process)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == _READY
        yield Nursery(process, undo)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(STOP_SECONDS)
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


# What follows is the nursery's own process.


def main() -> None:
    from hansa.entrypoints import cli, http  # noqa: F401, PLC0415

    assert threading.active_count() == len(os.listdir("/proc/self/task")) == 1, "a fork would lose the other threads"
    print(_READY, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become_a_manager(order)
        print(pid, flush=True)
        sys.stdin.readline()
        _reap()


def _reap() -> None:
    """Those that ended since; a few dead ones in between harm nobody."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _become_a_manager(order: dict[str, Any]) -> None:
    from hansa.entrypoints.cli import main as hansa  # noqa: PLC0415

    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with open(os.devnull) as nothing, open(order["log"], "ab") as log:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    random.seed()
    sys.argv = ["hansa", "server"]
    code = 1
    try:
        hansa()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
