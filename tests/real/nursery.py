"""Managers and hubs of tests: one process has imported what they use, and forks for each.

    process = nursery.started({"HANSA_…": "…"}, folder, folder / "manager.log")   # `hansa server` in that environment
    process.kill()

Most of a manager's start is imports, so this takes a quarter of the time. Each is a process of its own, in a session of
its own; all of them end with the nursery, and it with the tests. Where nobody opened one (benchmarks look at processor
time and memory of the real thing) the program itself is started.
"""

import contextlib
import ctypes
import itertools
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from real import parts
from real.postgres import tied_to_us

_ROOT = Path(__file__).parents[2]
_READY = "ready"
_PR_SET_PDEATHSIG = 1
_CLONE_NEWNET = 0x40000000
STOP_SECONDS = 10.0


@dataclass(slots=True)
class Child:
    """What tests ask of a `subprocess.Popen`."""

    pid: int
    _handle: int  # names this very process, also when its number is given to another
    _end: Path  # where it writes how it ended, if it can

    def poll(self) -> int | None:
        return self.returncode if self._ended(0) else None

    def wait(self, timeout: float) -> int:
        if not self._ended(timeout):
            raise subprocess.TimeoutExpired("hansa server", timeout)
        return self.returncode

    @property
    def returncode(self) -> int:
        """Of one that ended."""
        try:
            return int(self._end.read_text())
        except FileNotFoundError:
            return -signal.SIGKILL

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
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def start(self, environment: Mapping[str, str], folder: Path, log: Path, namespace: str = "") -> Child:
        """`namespace` is the path of the network namespace it lives in."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        end = folder / f".end-{next(self._numbers)}"
        end.unlink(missing_ok=True)
        order = {
            "environment": dict(environment),
            "folder": str(folder),
            "log": str(log),
            "end": str(end),
            "namespace": namespace,
        }
        with self._turn:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            pid = int(self._process.stdout.readline())
            handle = os.pidfd_open(pid)  # it is reaped only when it is told so, so the number is still its own
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        child = Child(pid, handle, end)
        self._undo.callback(child.close)
        return child


class _Shared:
    """The one of this test process; made when it is first needed."""

    def __init__(self) -> None:
        self.allowed: contextlib.ExitStack | None = None
        self._nursery: Nursery | None = None
        self._making = threading.Lock()

    def get(self) -> Nursery | None:
        with self._making:
            if self.allowed is not None and self._nursery is None:
                self._nursery = self.allowed.enter_context(nursery())
            return self._nursery if self.allowed is not None else None


_shared = _Shared()


def started(
    environment: Mapping[str, str], folder: Path, log: Path, inside: Sequence[str] = (), user: int | None = None
) -> subprocess.Popen[bytes] | Child:
    """`hansa server`; `inside` are the words before its command that bring it into a network namespace."""
    if user is not None:
        return _started_by(user, environment, folder, log)
    born = _shared.get()
    if born is None:
        with log.open("ab") as said:
            return subprocess.Popen(
                [*tied_to_us(), *inside, str(Path(sys.executable).with_name("hansa")), "server"],
                cwd=folder,
                env={**environment, "PYTHONPATH": str(_ROOT / "src")},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,  # Ctrl-C is for us; we then stop it in order
            )
    namespace = ""
    if inside:
        program, net, _ = inside
        assert program == "nsenter"
        namespace = net.removeprefix("--net=")
    return born.start(environment, folder, log, namespace)


def _started_by(user: int, environment: Mapping[str, str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """As another user, whose umask gives everything to everybody. Our own Python may lie where only we can go."""
    search = os.pathsep.join([str(_ROOT / "src"), *(path for path in sys.path if path.endswith("site-packages"))])
    python = next((each for each in (sys.executable, "/usr/bin/python3") if _usable(each, user, search)), None)
    if python is None:
        parts.give_up("python", "another user has no Python of our version on this machine, or cannot read this folder")
    programs = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
    with log.open("ab") as said:
        return subprocess.Popen(
            [python, "-c", "from hansa.entrypoints.cli import main; main()", "server"],
            cwd=folder,
            env={**environment, "PYTHONPATH": search, "PATH": programs},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=[],
            umask=0,
        )


def _usable(python: str, user: int, search: str) -> bool:
    ours = f"import sys, hansa; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    try:
        asked = subprocess.run(
            [python, "-c", ours],
            env={"PYTHONPATH": search},
            cwd="/",
            user=user,
            group=user,
            extra_groups=[],
            capture_output=True,
            timeout=20,
            check=False,
        )
    except OSError:
        return False
    return asked.returncode == 0


@pytest.fixture(scope="session", autouse=True)
def one_nursery() -> Iterator[None]:
    with contextlib.ExitStack() as undo:
        _shared.allowed = undo
        try:
            yield
        finally:
            _shared.allowed = None


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    paths = os.pathsep.join([str(_ROOT / "src"), str(_ROOT / "tests")])
    # It ends with its standard input, and so with us; not with the thread that happened to need it first.
    process = subprocess.Popen(
        [sys.executable, "-m", "real.nursery"],
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
    from hansa.entrypoints import cli, http, hub_loops  # noqa: F401, PLC0415
    from hansa.entrypoints.http import hub  # noqa: F401, PLC0415

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
    if order["namespace"]:
        _enter(order["namespace"])
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
    except BaseException:
        traceback.print_exc()  # nobody above prints it: the process ends here
    finally:
        Path(order["end"]).write_text(str(code))
        os._exit(code)


def _enter(namespace: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with open(namespace) as net:
        if libc.setns(net.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


if __name__ == "__main__":
    main()
