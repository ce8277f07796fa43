"""How is a file opened in a folder that others can change? Below a handle of the folder, and never through a link.

A path is not safe there: between two looks a folder can be swapped for a link to anywhere, and whoever opens the path
with more rights than the owner of the folder follows it. `O_NOFOLLOW` guards the last step of a path only.
"""

import contextlib
import ctypes
import errno
import itertools
import os
import stat
import struct
from collections.abc import Generator, Iterator
from dataclasses import dataclass

_OPENAT2 = 437
_BENEATH, _NO_SYMLINKS, _NO_MAGICLINKS = 0x08, 0x04, 0x02
_TRIES = 100
_DEEPEST = 64
_AT_A_TIME = 1000  # names of one folder that are kept in memory
_LOOKED_AT = 1000  # names, to find out whether there is anything
# A pipe must not make us wait.
_NEVER_WAIT = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NO_FILE = (errno.ELOOP, errno.ENXIO, errno.ENOENT, errno.ENOTDIR)  # a link, a socket, gone, or no folder any more

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class TooDeep(ValueError):
    """Folders are nested deeper than we follow."""


class TooMany(ValueError):
    """There are more names than we look at."""


class Unreadable(ValueError):
    """A file or folder is there that we cannot read, nor make readable."""


def open_beneath(top: int, path: str, flags: int, mode: int = 0o644) -> int:
    """A file below the folder with the handle `top`; raises OSError if a link stands anywhere on the way to it."""
    with_mode = mode if flags & os.O_CREAT else 0  # the kernel refuses a mode that means nothing
    how = struct.pack("QQQ", flags | os.O_CLOEXEC, with_mode, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    for _ in range(_TRIES):
        fd = int(
            _libc.syscall(ctypes.c_long(_OPENAT2), ctypes.c_int(top), os.fsencode(path), how, ctypes.c_size_t(len(how)))
        )
        if fd >= 0:
            return fd
        error = ctypes.get_errno()
        if error == errno.ENOSYS:  # Linux before 5.6, or a filter that does not know the call
            return _step_by_step(top, path, flags, mode)
        if error not in (errno.EAGAIN, errno.EINTR):  # somebody moved something just now
            break
    raise OSError(error, os.strerror(error), path)


def _step_by_step(top: int, path: str, flags: int, mode: int) -> int:
    *folders, last = [step for step in path.split("/") if step]
    if path.startswith("/") or ".." in (*folders, last):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    with contextlib.ExitStack() as opened:
        here = top
        for folder in folders:
            here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            opened.callback(os.close, here)
        return os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=here)


@contextlib.contextmanager
def fresh_file(top: int, path: str) -> Iterator[int]:
    """A new file open for writing; what stood there before is taken away first, and not followed if it was a link."""
    folder, _, name = path.rpartition("/")
    here = open_beneath(top, folder, os.O_RDONLY | os.O_DIRECTORY) if folder else os.dup(top)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=here)
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=here)
    finally:
        os.close(here)
    try:
        os.fchmod(fd, 0o644)  # whatever the umask says: the script may be another user
        yield fd
    finally:
        os.close(fd)


def write(top: int, path: str, content: bytes) -> None:
    """A new file with this content."""
    with fresh_file(top, path) as fd, open(os.dup(fd), "wb") as file:
        file.write(content)


@contextlib.contextmanager
def handle(folder: str | os.PathLike[str]) -> Iterator[int]:
    """Of a folder that itself stands where nobody else can change it."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def make_folders(top: int, steps: list[str]) -> None:
    """Every folder on this way is there."""
    here = os.dup(top)
    try:
        for step in steps:
            with contextlib.suppress(FileExistsError):
                os.mkdir(step, 0o755, dir_fd=here)
            below = open_beneath(here, step, os.O_RDONLY | os.O_DIRECTORY)
            os.close(here)
            here = below
    finally:
        os.close(here)


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A regular file that a script left, open for reading."""

    relative: str  # "/" between its steps
    fd: int
    size: int
    modified: int  # nanoseconds

    def read(self) -> bytes:
        """All of it."""
        with open(os.dup(self.fd), "rb") as file:
            file.seek(0)
            return file.read()


def left_files(top: int, folder: str, owner: int, most: int = 0) -> Generator[LeftFile, None, None]:
    """Every regular file below, each closed when the next one is asked for. Those of a folder come in order of name, a
    thousand at a time: how many there are is the script's to say, what we keep in memory is not. After `most` names of
    whatever kind, `TooMany` is raised; 0 is no limit.

    A second name of a file of somebody else (a hard link) is left out: it could be anything on this disk. What the
    script closed to its own user is opened again; `Unreadable` is raised for what remains closed.
    """
    # The folder's own name is the script's to change: it may have put anything in its place.
    here = _open_left(top, folder, folder, owner, os.O_DIRECTORY) if folder else os.dup(top)
    if here is None:
        return
    try:
        yield from _Walk(owner, most).below(here, "")
    finally:
        os.close(here)


def holds_files(top: int, folder: str, owner: int) -> bool:
    """Whether there is a regular file below. It is answered by the first one, and after a bounded number of names with
    yes: whoever left so many left something."""
    with contextlib.closing(left_files(top, folder, owner, _LOOKED_AT)) as left:
        try:
            return next(left, None) is not None
        except (TooDeep, TooMany, Unreadable):
            return True


class _Walk:
    def __init__(self, owner: int, most: int) -> None:
        self._owner = owner
        self._most = most
        self._seen = 0

    def below(self, folder: int, prefix: str) -> Iterator[LeftFile]:
        if prefix.count("/") > _DEEPEST:
            raise TooDeep(f"the script left folders nested deeper than {_DEEPEST}")
        with contextlib.closing(_names(folder)) as names:
            for name in names:
                self._seen += 1
                if self._most and self._seen > self._most:
                    raise TooMany(f"the script left more than {self._most:,} files, folders and links")
                yield from self._at(folder, name, prefix)

    def _at(self, folder: int, name: str, prefix: str) -> Iterator[LeftFile]:
        # S3 keys are text: a name in another encoding keeps what can be read of it
        relative = prefix + os.fsencode(name).decode("utf-8", "replace")
        fd = _open_left(folder, name, relative, self._owner)
        if fd is None:
            return
        try:
            facts = os.fstat(fd)
            if stat.S_ISDIR(facts.st_mode):
                yield from self.below(fd, relative + "/")
            elif _is_left(facts, self._owner):
                yield LeftFile(relative, fd, facts.st_size, facts.st_mtime_ns)
        finally:
            os.close(fd)


def _is_left(facts: os.stat_result, owner: int) -> bool:
    return stat.S_ISREG(facts.st_mode) and (facts.st_nlink == 1 or facts.st_uid == owner)


def _open_left(folder: int, name: str, shown: str, owner: int, flags: int = 0) -> int | None:
    """None if nothing that we carry is there."""
    flags |= os.O_RDONLY | _NEVER_WAIT
    try:
        try:
            return open_beneath(folder, name, flags)
        except PermissionError:
            return open_beneath(folder, name, flags) if _let_owner_in(folder, name, owner) else None
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise Unreadable(f"{shown} cannot be read: {error.strerror}") from error


def _let_owner_in(folder: int, name: str, owner: int) -> bool:
    """What we own is ours to open, if its mode said otherwise; by handle, for a name may be another file by now. False
    if it is nothing that we carry."""
    _open_mode(folder)
    closed = open_beneath(folder, name, os.O_PATH | os.O_NOFOLLOW)  # a handle that needs no right to read
    try:
        facts = os.fstat(closed)
        if not (stat.S_ISDIR(facts.st_mode) or _is_left(facts, owner)):
            return False
        _open_mode(closed)
        return True
    finally:
        os.close(closed)


def _open_mode(fd: int) -> None:
    facts = os.fstat(fd)
    if facts.st_uid == os.geteuid():
        needed = stat.S_IRUSR | (stat.S_IXUSR if stat.S_ISDIR(facts.st_mode) else 0)
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(facts.st_mode) | needed)


def _names(folder: int) -> Generator[str, None, None]:
    with os.scandir(folder) as entries:
        while some := sorted(entry.name for entry in itertools.islice(entries, _AT_A_TIME)):
            yield from some
