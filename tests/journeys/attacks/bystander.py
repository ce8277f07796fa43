"""Somebody who uses a manager while others attack it: is each of their questions answered?"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from real.manager import Manager

LONGEST = 60.0  # seconds; nobody should ever wait that long, however slow the machine is


class Bystander:
    """Asks for the health and for their services all the time, on connections of their own."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.answered = 0
        self.worst = 0.0
        self.refused: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        self._ends.set()
        self._thread.join(2 * LONGEST)
        if kind is None:
            assert not self.refused
            assert self.answered
            assert self.worst < LONGEST

    def _ask(self) -> None:
        while not self._ends.is_set():
            for path in ("/health", "/system/services"):
                began = time.monotonic()
                try:
                    answer = self._client.get(path, timeout=2 * LONGEST)
                    if answer.status_code != 200:
                        self.refused.append(answer.text)
                except httpx.HTTPError as error:
                    self.refused.append(repr(error))
                self.worst = max(self.worst, time.monotonic() - began)
                self.answered += 1


@contextmanager
def memory_within(manager: Manager, size: int) -> Iterator[None]:
    """The manager takes no more than so many bytes beyond what it has now, at any moment."""
    process = Path(f"/proc/{manager.pid}")
    (process / "clear_refs").write_text("5")  # the peak begins anew
    before = _peak(process)
    yield
    grown = _peak(process) - before
    assert grown < size, f"it grew by {grown // 2**20} MiB"


def _peak(process: Path) -> int:
    [line] = [one for one in (process / "status").read_text().splitlines() if one.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024
