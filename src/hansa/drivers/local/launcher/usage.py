"""How much room does a folder take on its disk? As the disk counts: blocks, not lengths; and what has no name any more.

Whoever owns the folder may work against us: nest folders deeper than can be followed, close them, add and remove. What
cannot be counted counts as too much.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable

TOO_MUCH = 2**62
OWN_TROUBLE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # of whoever looks, and nobody's fault
_DEEPEST = 200
_LEAST = 4096  # bytes that a file counts at least: its name and inode take room too
_BLOCK = 512


def of_folder(folder: str, most: int) -> int:
    """Bytes in all files below. Beyond `most` it does not go on."""
    return _within(folder, None, most, set(), 0)


def _within(name: str, parent: int | None, most: int, linked: set[int], depth: int) -> int:
    if depth > _DEEPEST:
        return TOO_MUCH
    try:
        folder = _opened(name, parent)
        try:
            return _below(folder, most, linked, depth)
        finally:
            os.close(folder)
    except FileNotFoundError:  # it goes away just now; what lies beside it stays
        return 0
    except OSError as error:
        if error.errno in OWN_TROUBLE:
            raise
        return TOO_MUCH


def _below(folder: int, most: int, linked: set[int], depth: int) -> int:
    used, folders = 0, []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                facts = _facts(entry, folder)
            except FileNotFoundError:
                continue
            if facts.st_nlink > 1 and not stat.S_ISDIR(facts.st_mode):
                if facts.st_ino in linked:
                    continue
                linked.add(facts.st_ino)
            used += max(facts.st_blocks * _BLOCK, _LEAST)
            if stat.S_ISDIR(facts.st_mode):
                folders.append(entry.name)
            if used > most:
                return used
    for name in folders:
        used += _within(name, folder, most - used, linked, depth + 1)
        if used > most:
            return used
    return used


def _facts(entry: os.DirEntry[str], folder: int) -> os.stat_result:
    try:
        return entry.stat(follow_symlinks=False)
    except PermissionError:  # it may be listed, not entered: closed by a job that is our own user, as in `_opened`
        os.fchmod(folder, 0o700)
        return entry.stat(follow_symlinks=False)


def _opened(name: str, folder: int | None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=folder)
    except NotADirectoryError:  # it was a folder a moment ago
        raise FileNotFoundError(name) from None
    except PermissionError:  # closed by a job that is our own user: we may open it again
        known = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{known}", 0o700)
            return os.open(f"/proc/self/fd/{known}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            os.close(known)


def unlinked(pids: Iterable[int], devices: set[int]) -> int:
    """Bytes in files on these devices that have no name any more, but are open or mapped in one of these processes."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            _open_files(pid, devices, found)
        with contextlib.suppress(OSError):
            _mapped_files(pid, devices, found)
    return sum(found.values())


def _open_files(pid: int, devices: set[int], found: dict[tuple[int, int], int]) -> None:
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            facts = os.stat(f"/proc/{pid}/fd/{fd}")
            if facts.st_nlink == 0 and facts.st_dev in devices:
                found[facts.st_dev, facts.st_ino] = facts.st_blocks * _BLOCK


def _mapped_files(pid: int, devices: set[int], found: dict[tuple[int, int], int]) -> None:
    """Their length in memory is all that can be seen of them."""
    with open(f"/proc/{pid}/maps", "rb") as table:  # as text a carriage return in a name would end a line
        for line in table:
            if not line.endswith(b"(deleted)\n"):
                continue
            span, _, _, numbers, inode = line.split(maxsplit=5)[:5]
            major, minor = (int(part, 16) for part in numbers.split(b":"))
            key = (os.makedev(major, minor), int(inode))
            if key[0] in devices and key not in found:
                start, end = (int(part, 16) for part in span.split(b"-"))
                found[key] = end - start
