"""How are a cluster's components started, killed and started again, so that none outlives the tests?

Each is a child of ours and is ended by that, never by a name. The kernel kills what is tied to us should the tests be
killed themselves: it watches the thread that started a process, so all are started by one thread that stays.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_END_SECONDS = 20.0
_PAUSE = 0.02
_LAST_WORDS = 2000
TIED = ("setpriv", "--pdeathsig", "KILL", "--")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(slots=True)
class _Started:
    words: tuple[str, ...]
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes]


class Processes:
    """Those of one cluster, by name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._logs = folder / "log"
        self._logs.mkdir()
        self._started: dict[str, _Started] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="starts processes")

    def start(self, name: str, words: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Its number."""
        with (self._logs / f"{name}.log").open("ab") as log:
            process = self._thread.submit(
                subprocess.Popen,
                list(words),
                cwd="/",
                # Not ours: a proxy that it names would be asked for the cluster's own addresses.
                env={"PATH": PATH, "HOME": str(self._folder), **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us; we then stop everything in order
            ).result()
        self._started[name] = _Started(tuple(words), dict(environment or {}), process)
        return process.pid

    def again(self, name: str) -> None:
        """With the words it was started with."""
        assert not self.runs(name), f"{name} runs"
        former = self._started[name]
        self.start(name, former.words, former.environment)

    def kill(self, name: str, entered: bool) -> None:
        """As a crash would. `entered`: we started only the way into its namespaces, and it is behind that."""
        process = self._started[name].process
        if not entered:
            process.kill()
        elif (number := self._behind(process)) is not None:
            _signal_child(number, process.pid, self._folder, signal.SIGKILL)
        process.wait(_END_SECONDS)

    def signal(self, name: str, what: signal.Signals) -> None:
        """To what is behind the way into its namespaces."""
        process = self._started[name].process
        if (number := self._behind(process)) is not None:
            _signal_child(number, process.pid, self._folder, what)

    def runs(self, name: str) -> bool:
        return name in self._started and self._started[name].process.poll() is None

    def child(self, name: str) -> int:
        """The number of what the named process started."""
        number = self._behind(self._started[name].process)
        if number is None:
            raise RuntimeError(f"{name} ended:\n{self.last_words(name)}")
        return number

    def until(self, met: Callable[[], bool], seconds: float, what: str, *needed: str) -> None:
        """Waits, no longer than the components it needs live."""
        deadline = time.monotonic() + seconds
        while not met():
            for name in needed:
                if not self.runs(name):
                    raise RuntimeError(f"{name} ended while we waited for {what}:\n{self.last_words(name)}")
            if time.monotonic() > deadline:
                words = "\n".join(f"{name}: {self.last_words(name)}" for name in needed)
                raise RuntimeError(f"{what}: not within {seconds:.0f} s\n{words}")
            time.sleep(_PAUSE)

    def last_words(self, name: str) -> str:
        with contextlib.suppress(OSError):
            return (self._logs / f"{name}.log").read_text(errors="replace")[-_LAST_WORDS:]
        return ""

    def close(self) -> None:
        """Ends what still runs, the last one first."""
        for one in reversed(self._started.values()):
            one.process.kill()
            one.process.wait(_END_SECONDS)
        self._thread.shutdown()

    def _behind(self, process: subprocess.Popen[bytes]) -> int | None:
        children = Path("/proc", str(process.pid), "task", str(process.pid), "children")
        deadline = time.monotonic() + _END_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if numbers := children.read_text().split():
                    return int(numbers[0])
            time.sleep(_PAUSE)
        return None


def _signal_child(number: int, parent: int, folder: Path, what: signal.Signals) -> None:
    """Only if it is what we mean: a child of that process, told to use that folder."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        handle = os.pidfd_open(number)
        try:
            about = Path("/proc", str(number))
            above = int((about / "stat").read_text().rpartition(")")[2].split()[1])
            if above != parent or str(folder).encode() not in (about / "cmdline").read_bytes():
                raise RuntimeError(f"process {number} is not one of the cluster in {folder}")
            signal.pidfd_send_signal(handle, what)
        finally:
            os.close(handle)
