"""How is a job kept from files and TCP where no namespaces may be made? By Landlock rules on itself.

Landlock does not cover `stat`, `chmod` or UDP, and shows host paths by name: the third-best level.
"""

import os
import struct
from collections.abc import Iterable

from . import linux

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_ALL_TCP = 0b11  # bind, connect
_ALL_SCOPES = 0b11  # abstract sockets, signals to the outside

READ = _EXECUTE | _READ_FILE | _READ_DIR
READ_WRITE_FILE = _READ_FILE | _WRITE_FILE
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


def abi() -> int:
    """The kernel's Landlock version; 0 without Landlock."""
    try:
        return linux.syscall(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def everything(version: int) -> int:
    """All rights on files this kernel knows: what a ruleset does not handle, it does not restrict."""
    rights: int = (1 << 13) - 1
    for since, bit in ((2, 13), (3, 14), (5, 15)):
        if version >= since:
            rights |= 1 << bit
    return rights


def restrict(readable: Iterable[str], writable: Iterable[str | int], devices: Iterable[str], *, tcp: bool) -> None:
    """Limit this process for good; paths that do not exist are left out. A folder may be given by its handle."""
    version = abi()
    handled = everything(version)
    attributes = struct.pack("QQQ", handled, 0 if tcp else _ALL_TCP, _ALL_SCOPES)
    attributes = attributes[: 8 if version < 4 else 16 if version < 6 else 24]
    ruleset = linux.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    rules: list[tuple[str | int, int]] = [(path, READ) for path in readable]
    rules += [(path, READ_WRITE_FILE) for path in devices]
    rules += [(path, handled) for path in writable]
    for path, rights in rules:
        if not os.path.exists(path):
            continue
        fitting = handled if os.path.isdir(path) else handled & _FOR_FILES
        fd = os.dup(path) if isinstance(path, int) else os.open(path, os.O_PATH | os.O_CLOEXEC)
        linux.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights & fitting, fd), 0)
        os.close(fd)
    linux.no_new_privileges()
    linux.syscall(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
