"""How is a file read that a script can put anything in the place of? No link is followed, no pipe waited at, and no
more is read than was asked for.

The folders that a script shares with us are its own: a link there would be followed to what only we may read.
"""

import errno
import os
import re
import stat

from hansa.drivers.runs.stager import beneath
from hansa.drivers.runs.stager.errors import Refused

_CODE = re.compile(rb"\d{1,3}\n")
_LONGEST_CODE = 16


def read(path: str, most: int) -> bytes | None:
    """As much of a regular file; None if nothing is there. Raises `Refused` if something else is."""
    try:
        fd = _opened(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(_spoilt(path)) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Refused(_spoilt(path))
        with open(os.dup(fd), "rb") as file:
            return file.read(most)
    finally:
        os.close(fd)


def exit_code(path: str) -> int | None:
    """What the shell wrote there at the script's end; None before that. Raises `Refused` if it is something else."""
    said = read(path, _LONGEST_CODE) or b""
    if _CODE.fullmatch(said):
        return int(said)
    if said.endswith(b"\n") or len(said) == _LONGEST_CODE:
        raise Refused(_spoilt(path))
    return None


def write(path: str, content: bytes) -> None:
    """A new file in the place of whatever is there. Raises OSError if that cannot be taken away."""
    folder, name = os.path.split(path)
    with beneath.handle(folder) as top:
        beneath.write(top, name, content)


def tell(path: str, words: bytes) -> bool:
    """Whether somebody reads at this pipe, and was told. Raises `Refused` if it is no pipe."""
    try:
        fd = _opened(path, os.O_WRONLY)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return False
        raise Refused(_spoilt(path)) from error
    try:
        if not stat.S_ISFIFO(os.fstat(fd).st_mode):
            raise Refused(_spoilt(path))
        os.write(fd, words)
    finally:
        os.close(fd)
    return True


def _opened(path: str, flags: int) -> int:
    folder, name = os.path.split(path)
    with beneath.handle(folder) as top:
        return beneath.open_beneath(top, name, flags | os.O_NONBLOCK)


def _spoilt(path: str) -> str:
    return f"the script put something of its own in the place of {path}"
