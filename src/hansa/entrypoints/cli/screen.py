"""What does a person, or a script, get to see? Answers on stdout, everything else on stderr.

Every command makes a `Screen`. With `--json` stdout holds one JSON document and nothing else; without, tables
and lines that read well without colour. Bars and spinners appear only on a terminal.
"""

import codecs
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from hansa.kernel import plain_text
from hansa.kernel.errors import HansaError

_WIDE = 10_000  # a file or pipe has no edge: never wrap or cut there
_STYLE = {
    "ready": "green", "succeeded": "green", "running": "cyan", "ok": "green", "created": "green",
    "updated": "green", "pending": "yellow", "suspended": "yellow", "degraded": "yellow", "failed": "red",
    "notready": "red", "unavailable": "dim", "stopped": "dim", "unreachable": "red", "draining": "yellow",
    "leaving": "yellow", "left": "dim", "in-sync": "green", "waiting": "yellow", "out-of-reach": "dim",
    "soaking": "cyan", "paused": "yellow", "done": "green", "rolled-back": "yellow",
}  # fmt: skip


def plain(value: Any) -> str:
    """A value as one line of text, without the control characters a name or message could smuggle in."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(plain(item) for item in value)
    return plain_text.plain(str(value)).replace("\n", " ")


def style_of(word: str) -> str:
    """The colour of a state; none is needed to read it."""
    return _STYLE.get(word.lower(), "")


def _lines(text: str) -> str:
    """Several of them: nothing but a new line makes another one."""
    return plain_text.plain(text.rstrip().replace("\r\n", "\n"))


def _write_json(value: Any, *, indent: int | None = None) -> None:
    """What scripts read people see, too, when nobody takes it from stdout."""
    sys.stdout.write(plain_text.escaped(json.dumps(value, ensure_ascii=False, indent=indent)) + "\n")
    sys.stdout.flush()


def _console(stream: IO[str]) -> Console:
    terminal = stream.isatty()
    colour = terminal and not os.environ.get("NO_COLOR")
    return Console(
        file=stream,
        force_terminal=terminal,
        color_system="auto" if colour else None,
        width=None if terminal else _WIDE,
        highlight=False,
        markup=False,
        emoji=False,
    )


class Screen:
    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        self._out = _console(sys.stdout)
        self._err = _console(sys.stderr)
        self._shown = codecs.getincrementaldecoder("utf-8")(errors="replace")  # pieces may end within a character

    @property
    def live(self) -> Console | None:
        """Where a picture can move: stdout, if it is a terminal and no machine reads it."""
        return self._out if self._out.is_terminal and not self.as_json else None

    @property
    def interactive(self) -> bool:
        """A person sits there: stderr is a terminal and no machine output was asked for."""
        return sys.stderr.isatty() and not self.as_json

    def data(self, value: Any) -> None:
        """The machine's answer; only with `--json`."""
        if self.as_json:
            _write_json(value, indent=2)

    def record(self, value: Any) -> None:
        """One of many documents, a line each; only with `--json`."""
        if self.as_json:
            _write_json(value)

    def line(self, text: str) -> None:
        """A line of the people's answer."""
        if not self.as_json:
            self._out.print(Text(plain(text)), soft_wrap=True)

    def block(self, text: str) -> None:
        """Several lines as they are, such as a definition."""
        if not self.as_json:
            self._out.print(Text(_lines(text)), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str = "") -> None:
        if self.as_json:
            return
        cells = [[plain(value) for value in row] for row in rows]
        if not cells and empty:
            self.note(empty)
            return
        if not self._out.is_terminal:
            self._aligned([[column.upper() for column in columns], *cells])
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            table.add_column(Text(column.upper()), overflow="fold")
        for row in cells:
            table.add_row(*(Text(cell, style=style_of(cell)) for cell in row))
        self._out.print(table)

    def _aligned(self, rows: list[list[str]]) -> None:
        """Columns for a pipe or file: never wrapped or cut, and quick for thousands of rows."""
        widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
            sys.stdout.write("  ".join(padded).rstrip() + "\n")

    def facts(self, pairs: Iterable[tuple[str, Any]]) -> None:
        """Names and values, one per line, empty ones left out."""
        if self.as_json:
            return
        told = [[name, text] for name, value in pairs if (text := plain(value))]
        if not told:
            return
        if not self._out.is_terminal:
            self._aligned(told)
            return
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for name, text in told:
            table.add_row(Text(name), Text(text, style=style_of(text)))
        self._out.print(table)

    def raw(self, content: bytes) -> None:
        """Logs and results: in a pipe or file exactly as they came; on a terminal without what a script, or a cluster
        that we were told of, could make the terminal do."""
        if self._out.is_terminal:
            content = plain_text.log(self._shown.decode(content)).encode()
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()

    def note(self, text: str) -> None:
        self._err.print(Text(plain(text), style="dim"), soft_wrap=True)

    def aside(self, text: str) -> None:
        """Several lines that are no answer: a failed script's output, a help text after a mistake."""
        self._err.print(Text(_lines(text)), soft_wrap=True)

    def warn(self, text: str) -> None:
        self._err.print(Text("warning: ", style="yellow") + Text(plain(text)), soft_wrap=True)

    def error(self, message: str, hint: str = "") -> None:
        self._err.print(Text("error: ", style="bold red") + Text(plain(message)), soft_wrap=True)
        if hint:
            self._err.print(Text("hint: ", style="bold") + Text(plain(hint)), soft_wrap=True)

    def failure(self, error: HansaError) -> None:
        self.error(error.message, error.hint)

    @contextmanager
    def transfer(self, title: str, total: int | None) -> Iterator["Bar"]:
        """A bar that counts bytes."""
        columns = (
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True),
            TransferSpeedColumn(), TimeRemainingColumn(),
        )  # fmt: skip
        with self._progress(*columns) as progress:
            yield Bar(progress, progress.add_task(plain(title), total=total))

    @contextmanager
    def waiting(self, title: str) -> Iterator["Bar"]:
        """A spinner with the time gone by."""
        with self._progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as progress:
            yield Bar(progress, progress.add_task(plain(title), total=None))

    def _progress(self, *columns: Any) -> Progress:
        return Progress(
            *columns,
            console=self._err,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not self.interactive,
        )


class Bar:
    """One moving line; does nothing where nobody watches."""

    def __init__(self, progress: Progress, task: Any) -> None:
        self._progress = progress
        self._task = task

    def advance(self, amount: int) -> None:
        self._progress.advance(self._task, amount)

    def total(self, amount: int | None) -> None:
        self._progress.update(self._task, total=amount)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Clears the line while something else is written to the terminal."""
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def title(self, text: str) -> None:
        self._progress.update(self._task, description=plain(text))
