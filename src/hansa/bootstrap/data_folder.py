"""Who may look into the data folder? Only the user that the manager runs as.

The folder itself is the wall: 0700. Where jobs have user ids of their own and walk real paths (root at the levels
`landlock` and `process`), other users may pass through it, but not list it. What lies in it is therefore private by
itself too. A folder from an earlier version, or one made by hand, is brought to these rules at every start.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import structlog

from hansa.kernel import disk_room, errors, quantities

_log = structlog.get_logger("hansa")
_PRIVATE, _PASSAGE = 0o700, 0o711
_PASSAGES = ("work", "volumes")
_OURS = frozenset(("hub", "logs", "membership", "objects", "run", *_PASSAGES))
_FILES = ("admin-password", "hansa.db", "hansa.db-shm", "hansa.db-wal", "lock")  # `identity.vault` sees to its key
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_UMASK = 0o022  # what we mean to be private says so itself, and jobs of other users read what is meant for them


class DiskFull(errors.Temporary):
    """The disk of the data folder has no room for the manager itself."""

    code = "manager.disk-full"


@contextlib.contextmanager
def with_room(data: Path) -> Iterator[None]:
    """Raises `DiskFull` if a start finds no room, at once or on its way, whatever part of it notices first."""
    if disk_room.is_full(data):
        raise _full(data)
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise _full(data) from error
    except errors.Temporary as error:
        if isinstance(error, DiskFull) or not disk_room.is_full(data):
            raise
        raise _full(data) from error  # the embedded store, say, ends without a word of it


def _full(data: Path) -> DiskFull:
    free = quantities.show_size(disk_room.free(data))
    return DiskFull(
        f"the disk is full: {data} has no room for this start ({free} are free)",
        hint=f"free some room on the disk of {data}, or move the folder to a larger one and set HANSA_DATA; "
        f"`du -xh {data} | sort -h | tail` shows what takes most of it",
    )


def fix_umask() -> None:
    """The modes of new files do not depend on the shell or the unit that started us."""
    os.umask(_UMASK)


def close(data: Path) -> None:
    """Makes the folder if needed and shuts other users out of it and of everything in it."""
    data.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    for name in (*_OURS, *_FILES):
        _tighten(data / name, 0o077 & ~(_PASSAGE if name in _PASSAGES else 0))
    found = data.stat().st_mode
    # Kubernetes gives a volume to the pod's own group, sees by the set-group bit that it did, and would else open every
    # file in it to that group again.
    if shared := _shared_with(data, found):
        _log.warning("the data folder stays open to others", folder=str(data), why=shared, hint=f"chmod 700 {data}")
    elif _tighten(data, 0o007 if found & stat.S_ISGID else 0o077) and found & 0o066:
        _log.warning(
            "the data folder was open to others and is private now", folder=str(data), was=f"{found & 0o777:o}"
        )


def let_jobs_pass(data: Path, *, walked: bool) -> None:
    """Opens the way to the folders of jobs and volumes; past the data folder itself only where jobs walk it."""
    for name in _PASSAGES:
        (data / name).mkdir(exist_ok=True)
        (data / name).chmod(_PASSAGE)
    if walked:
        data.chmod(data.stat().st_mode & 0o7777 | 0o011)


def _shared_with(data: Path, mode: int) -> str:
    """Why it must not be closed: a folder that others use too would be taken from them."""
    if mode & stat.S_ISVTX:
        return "everybody may put files into it"
    others = sorted(each.name for each in os.scandir(data) if each.is_dir(follow_symlinks=False))
    strange = [name for name in others if name not in _OURS and not name.startswith(".") and name != "lost+found"]
    return f"it has folders that are not ours: {', '.join(strange[:3])}" if strange else ""


def _tighten(path: Path, bits: int) -> bool:
    """Takes these rights away; whether any were there to take."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or not mode & bits:  # who links a folder elsewhere has chosen its rights
            return False
        path.chmod(stat.S_IMODE(mode) & ~bits)
    except FileNotFoundError:
        return False
    except PermissionError:  # a mounted disk whose root belongs to another user, as in a pod
        _log.warning("the rights of a folder that is not ours stay as they are", path=str(path))
        return False
    return True
