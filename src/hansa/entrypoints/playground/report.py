"""What does the person in front of `make run` see? Moving lines on a terminal, plain ones anywhere else."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import IO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from hansa.entrypoints.playground.hub import HubAddress
from hansa.entrypoints.playground.member import Address
from hansa.kernel.errors import HansaError

_REFRESH = 0.1
_TRY = (
    ".venv/bin/hansa apply -f examples/01-first-service/fdl.yaml",
    ".venv/bin/hansa bucket put examples/01-first-service/greeting.txt first-service/in/",
    ".venv/bin/hansa job ls first-service",
    ".venv/bin/hansa job logs first-service -f",
    ".venv/bin/hansa cluster ls",
    ".venv/bin/hansa top",
)


class Report:
    def __init__(self, stream: IO[str]) -> None:
        self._terminal = stream.isatty()
        self._console = Console(
            file=stream, highlight=False, markup=False, emoji=False, width=None if self._terminal else 10_000
        )
        self._ready: dict[str, float] = {}

    def say(self, text: str, style: str = "") -> None:
        # A terminal that was closed must not keep us from stopping what we started.
        with contextlib.suppress(OSError, ValueError):
            self._console.print(Text(text, style=style), soft_wrap=True)

    @asynccontextmanager
    async def starting(self, names: Sequence[str]) -> AsyncIterator[None]:
        """Shows who is still starting for as long as the block lasts."""
        if not self._terminal:
            self.say(f"starting {', '.join(names)}")
            yield
            return
        spinners = {name: Spinner("dots", Text(f"{name}  starting")) for name in names}
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            task = asyncio.create_task(self._move(live, spinners), name="progress")
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _move(self, live: Live, spinners: dict[str, Spinner]) -> None:
        began = time.monotonic()
        while True:
            table = Table.grid()
            for name, spinner in spinners.items():
                if name in self._ready:
                    table.add_row(Text(f"✓ {name}  ready after {self._ready[name]:.1f} s", style="green"))
                else:
                    spinner.update(text=Text(f"{name}  starting, {time.monotonic() - began:.0f} s"))
                    table.add_row(spinner)
            with contextlib.suppress(OSError):
                live.update(table, refresh=True)
            await asyncio.sleep(_REFRESH)

    def ready(self, name: str, seconds: float) -> None:
        self._ready[name] = seconds
        if not self._terminal:
            self.say(f"{name}: ready after {seconds:.1f} s")

    def federation(self, addresses: Collection[Address], hub: HubAddress, seconds: float) -> None:
        """The table of what runs, and what to try."""
        self.say(f"{len(addresses)} clusters are ready after {seconds:.1f} s, joined by a hub\n", style="bold")
        rows = [("cluster", "manager", "user", "password", "objects (S3)")]
        rows += [(one.id, one.url, one.admin_user, one.admin_password, one.s3_url) for one in addresses]
        rows.append(("hub", hub.url, hub.admin_user, hub.admin_password, ""))
        for number, line in enumerate(_columns(rows)):
            self.say(f"  {line}", style="bold" if number == 0 else "")
        self.say("\nTry, in another terminal:\n", style="bold")
        for command in _TRY:
            self.say(f"  {command}")
        self.say(
            f"\nThe API in a browser: {next(iter(addresses)).url}/docs, the hub's: {hub.url}/docs."
            " Logs: .playground/*/*.log."
        )
        self.say("Ctrl-C stops everything; the data stays in .playground for the next time.")

    def failure(self, error: HansaError) -> None:
        for line in error.facts.get("log", ()):
            self.say(f"  | {line}", style="dim")
        self.say(f"error: {error.message}", style="red")
        if error.hint:
            self.say(f"hint: {error.hint}")


def _columns(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
