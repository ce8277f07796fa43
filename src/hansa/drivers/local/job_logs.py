"""What did a job print? One file for each job, a time before every line, bounded in size, and so are all of one owner.

`LogBook` is the `JobLogs` port over a folder; the job host writes through `LogBook.open`. Lines are gathered
in memory and written a few times a second, so a chatty script costs few system calls; `read` sees them all.
"""

import asyncio
import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

from hansa.drivers.runs import log_levels
from hansa.drivers.runs.log_shares import LogShares
from hansa.kernel import clock, quantities
from hansa.resources import NO_LIMIT

_FLUSH_AFTER = 0.2
_FLUSH_BYTES = 128 * 1024
_LONGEST_LINE = 64 * 1024
_BLOCK = 4096
_DROPPED = ".dropped"
_OWN_LINES = 64 * 1024  # room beyond the limit for what we say ourselves


class LineCutter:
    """Cuts a stream into lines; one without end is cut where it gets too long."""

    def __init__(self, longest: int = _LONGEST_LINE, most: int | None = None) -> None:
        """Where only the last `most` lines are of interest, those before them in what came are not even cut."""
        self._longest = longest
        self._most = most
        self.rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        if self._most is None:
            *lines, rest = (self.rest + data).split(b"\n")
        else:
            *lines, rest = (self.rest + data).rsplit(b"\n", self._most + 1)
            lines = lines[-self._most :]  # the first one is all that was not cut
        while len(rest) > self._longest:
            lines.append(rest[: self._longest])
            rest = rest[self._longest :]
        self.rest = rest
        return lines

    def finish(self) -> list[bytes]:
        """The last line, if it has no end."""
        last, self.rest = self.rest, b""
        return [last] if last else []


class LogWriter:
    """The log of one run while it runs."""

    def __init__(self, book: "LogBook", name: str, level: str, owner: str) -> None:
        self._book = book
        self._owner = owner
        self._no_room = False  # its owner has no room left for logs
        self._name = name
        self._level = level
        self._cutter = LineCutter()
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._dropped = 0
        path = book.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._timer: asyncio.TimerHandle | None = None
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._fd).st_size
        book.shares.set(name, owner, self._size)
        if self._size and os.pread(self._fd, 1, self._size - 1) != b"\n":
            self._add(b"\n")  # a manager that died may have left half a line

    def feed(self, data: bytes) -> None:
        """What the script printed."""
        if self._size >= self._book.limit or self._no_room:
            self._dropped += len(data)
        else:
            self._keep(self._cutter.feed(data))

    def say(self, level: str, text: str) -> None:
        """A line of our own, if the service's log level lets it through. Never with a secret in it."""
        if not log_levels.lets_through(self._level, level):
            return
        self._keep(self._cutter.finish())
        if self._size < self._book.limit + _OWN_LINES:
            self._add(_stamped([f"hansa {level}: {text[:4096]}".encode(errors="replace")]))

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending, self._pending_size = b"".join(self._pending), [], 0
        # a full disk costs lines of a log, never the job
        with contextlib.suppress(OSError):
            while pending:
                pending = pending[os.write(self._fd, pending) :]

    @property
    def half_line(self) -> bytes:
        """Printed and not ended yet, as a reader should see it."""
        return _stamped([self._cutter.rest]) if self._cutter.rest else b""

    def close(self) -> None:
        self._keep(self._cutter.finish())
        if self._dropped:
            most = quantities.show_size(self._book.limit)
            own = f"hansa: {self._dropped} bytes dropped: the limit of a log is {most}"
            said = self._book.shares.cut(self._dropped) if self._no_room else own
            self._add(_stamped([said.encode()]))
        self.flush()
        os.close(self._fd)
        self._book.closed(self._name)
        self._book.room(self._owner, 0)  # what we said ourselves came on top

    def _keep(self, lines: list[bytes]) -> None:
        if not lines:
            return
        stamped = _stamped(lines)
        room = max(self._book.limit - self._size, 0)
        shared = 0 if self._no_room else self._book.room(self._owner, min(len(stamped), room))
        if len(stamped) > min(room, shared):
            cut = stamped.rfind(b"\n", 0, min(room, shared)) + 1
            self._dropped += len(stamped) - cut
            stamped = stamped[:cut]
            # full from here on: a log has no gaps in its middle
            self._no_room = shared < room
            self._size += 0 if self._no_room else room - cut
        self._add(stamped)

    def _add(self, text: bytes) -> None:
        self._size += len(text)
        self._book.shares.grow(self._name, len(text))
        self._pending.append(text)
        self._pending_size += len(text)
        if self._pending_size >= _FLUSH_BYTES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_AFTER, self.flush)


class LogBook:
    """The logs of all jobs. One that had to go for newer ones of its owner leaves an empty file with another name."""

    def __init__(self, root: Path, limit: int, most: int = NO_LIMIT) -> None:
        """`limit` is for one log, `most` for all of one owner."""
        self.limit = limit
        self.shares = LogShares(most)
        self._root = root
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._open: dict[str, LogWriter] = {}

    def path(self, name: str) -> Path:
        # thousands of files in one folder are slow to list; a job's name spreads evenly only when hashed
        shelf = hashlib.sha256(name.encode()).hexdigest()[:2]
        return self._root / shelf / f"{name}.log"

    def open(self, name: str, level: str = "INFO", *, owner: str = "") -> LogWriter:
        """Goes on where an earlier attempt ended."""
        writer = self._open[name] = LogWriter(self, name, level, owner)
        return writer

    def closed(self, name: str) -> None:
        self._open.pop(name, None)
        self.shares.end(name, time.time())

    def room(self, owner: str, size: int) -> int:
        """Bytes that may be added to a log of this owner; older ones go for so many."""
        for old in self.shares.make_room(owner, size + _BLOCK):  # a log may begin another block
            self._drop(old)
        return self.shares.left(owner)

    def _drop(self, name: str) -> None:
        path = self.path(name)
        with contextlib.suppress(OSError):
            path.with_suffix(_DROPPED).touch(mode=0o600)
        path.unlink(missing_ok=True)

    async def recall(self, ended: Sequence[tuple[str, str, float]]) -> None:
        fresh = [one for one in ended if not self.shares.knows(one[0])]
        self.shares.recall(await asyncio.to_thread(self._sizes, fresh))
        for owner in self.shares.owners():
            self.room(owner, 0)

    def _sizes(self, ended: Sequence[tuple[str, str, float]]) -> list[tuple[str, str, float, int]]:
        found = []
        for name, owner, at in ended:
            with contextlib.suppress(OSError):
                found.append((name, owner, at, self.path(name).stat().st_size))
        return found

    async def read(self, name: str, *, timestamps: bool) -> str | None:
        writer = self._open.get(name)
        half_line = b""
        if writer is not None:
            writer.flush()
            half_line = writer.half_line
        return await asyncio.to_thread(self._read, name, half_line, timestamps)

    async def keep(self, name: str, text: str, *, owner: str) -> None:
        """The log of a job that ran elsewhere, as `read` with timestamps gives it there."""
        data = text.encode(errors="replace")[: self.limit]
        self.shares.forget(name)
        room = self.room(owner, len(data))
        if len(data) > room:
            cut = data.rfind(b"\n", 0, room) + 1
            data = data[:cut] + _stamped([self.shares.cut(len(data) - cut).encode()])
        self.shares.set(name, owner, len(data))
        self.shares.end(name, time.time())
        await asyncio.to_thread(self._write, self.path(name), data)

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data if data.endswith(b"\n") or not data else data + b"\n")

    async def remove(self, name: str) -> None:
        """A missing log is fine."""
        self.shares.forget(name)
        for path in (self.path(name), self.path(name).with_suffix(_DROPPED)):
            await asyncio.to_thread(path.unlink, missing_ok=True)

    def _read(self, name: str, half_line: bytes, timestamps: bool) -> str | None:
        try:
            kept = self.path(name).read_bytes() + half_line
        except FileNotFoundError:
            kept = self._instead(name)
            if not kept:
                return None
        if not timestamps:
            kept = b"".join(line.partition(b" ")[2] + b"\n" for line in kept.split(b"\n")[:-1])
        return kept.decode(errors="replace")

    def _instead(self, name: str) -> bytes:
        try:
            at = self.path(name).with_suffix(_DROPPED).stat().st_mtime
        except FileNotFoundError:
            return b""
        return _stamped([self.shares.dropped().encode()], at)


def _stamped(lines: list[bytes], at: float | None = None) -> bytes:
    """Each with the time, in UTF-8 whatever the script printed. What came together has the same time."""
    stamp = clock.rfc3339_nanos(time.time() if at is None else at).encode() + b" "
    text = b"".join([stamp + line + b"\n" for line in lines])
    return text.decode(errors="replace").encode()
