"""A real playground in a folder of its own, for tests: started, heard line by line, and never left behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

START_SECONDS = 100.0
_END_SECONDS = 40.0
MODULE = "hansa.entrypoints.playground"


class Playground:
    def __init__(self, folder: Path, settings: Mapping[str, str], module: str = MODULE) -> None:
        self.folder = folder.resolve()
        self.notes = self.folder / ".playground"
        env = {name: value for name, value in os.environ.items() if not name.startswith("HANSA_")}
        self.env = env | {"PYTHONUNBUFFERED": "1"} | dict(settings)
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._heard = threading.Condition()
        self._ended = False
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._heard:
                self._lines.append(line.rstrip("\n"))
                self._heard.notify_all()
        with self._heard:
            self._ended = True
            self._heard.notify_all()

    @property
    def said(self) -> str:
        return "\n".join(self._lines)

    def wait_for(self, text: str, seconds: float = START_SECONDS) -> None:
        """Until a line holds this text."""
        with self._heard:
            self._heard.wait_for(lambda: text in self.said or self._ended, seconds)
        assert text in self.said, f"{text!r} was not said:\n{self.said}"

    def info(self) -> dict[str, Any]:
        """What info.json says once everything is ready."""
        self.wait_for("clusters are ready")
        found: dict[str, Any] = json.loads((self.notes / "info.json").read_text())
        return found

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        code = self.process.wait(_END_SECONDS)
        self._listener.join(5)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    def processes(self) -> dict[int, str]:
        """Everything that runs for this folder, the playground itself included."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with_folder = _belonging(entry, str(self.notes))
                if with_folder is not None or int(entry.name) == self.process.pid:
                    found[int(entry.name)] = with_folder or "the playground"
        return found

    def servers(self) -> dict[str, int]:
        """The process of each cluster's manager, and of the hub."""
        return {
            Path(os.readlink(f"/proc/{pid}/cwd")).name: pid
            for pid, command in self.processes().items()
            if command.endswith("-m hansa server") and "lifeline" not in command
        }


def _belonging(entry: Path, marker: str) -> str | None:
    """The command line of a process that has the folder in its words, its variables or its working directory."""
    try:
        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        variables = (entry / "environ").read_bytes().decode(errors="replace")
        here = os.readlink(entry / "cwd")
    except OSError:
        return None  # it ended meanwhile, or is none of ours
    return command if command and (marker in command or marker in variables or here.startswith(marker)) else None


def eventually(check: Callable[[], bool], seconds: float, what: Callable[[], object]) -> None:
    """For what tells of no event: polls until it is so."""
    give_up = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < give_up, f"still so after {seconds:.0f} s: {what()}"
        time.sleep(0.1)


@contextmanager
def playground(folder: Path, settings: Mapping[str, str] | None = None, module: str = MODULE) -> Iterator[Playground]:
    started = Playground(folder, settings or {}, module)
    try:
        yield started
    finally:
        with suppress(subprocess.TimeoutExpired):
            if started.process.poll() is None:
                started.end()
        for pid in started.processes():  # nothing, unless the test failed
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        started.wait()
