"""Which files did a script leave in its folder? Nothing is ever opened by following a link."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hansa.kernel import errors

_DEEPEST = 64
_NOFOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe must not make us wait


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A regular file the script left, open for reading."""

    relative: str  # "/" between its steps
    fd: int
    size: int
    modified: int  # nanoseconds

    @property
    def path(self) -> Path:
        """A path to exactly this open file, whatever happens to its name."""
        return Path(f"/proc/self/fd/{self.fd}")


def left_files(folder: Path, owner: int) -> Iterator[LeftFile]:
    """Every regular file below, in order of name, each closed when the next one is asked for.

    Each step is opened relative to the one before and never through a link, so a script cannot make us read
    anything outside. A second name of a file of somebody else (a hard link) is left out for the same reason.
    """
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW)
    except OSError:
        return  # the script removed it, or put something else in its place
    try:
        yield from _walk(top, "", owner)
    finally:
        os.close(top)


def _walk(folder: int, prefix: str, owner: int) -> Iterator[LeftFile]:
    if prefix.count("/") > _DEEPEST:
        raise errors.Invalid(f"the script left folders nested deeper than {_DEEPEST}")
    for name in sorted(os.listdir(folder)):
        try:
            fd = os.open(name, os.O_RDONLY | _NOFOLLOW, dir_fd=folder)
        except OSError:
            continue  # a link, a socket, or gone
        try:
            facts = os.fstat(fd)
            # S3 keys are text: a name in another encoding keeps what can be read of it
            relative = prefix + os.fsencode(name).decode("utf-8", "replace")
            if stat.S_ISDIR(facts.st_mode):
                yield from _walk(fd, relative + "/", owner)
            elif stat.S_ISREG(facts.st_mode) and (facts.st_nlink == 1 or facts.st_uid == owner):
                yield LeftFile(relative, fd, facts.st_size, facts.st_mtime_ns)
        finally:
            os.close(fd)
