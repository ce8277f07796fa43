"""Which kernel calls does the launcher need that Python does not offer?"""

import ctypes
import os
import struct
from collections.abc import Iterable

MS_NOSUID, MS_NODEV = 0x2, 0x4
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 0x80000
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x40000000

EXT4 = "ext4"
_FSOPEN, _FSCONFIG, _FSMOUNT, _MOVE_MOUNT = 430, 431, 432, 429
_CLOEXEC, _SET_FLAG, _SET_STRING, _CREATE = 1, 0, 1, 6
_FROM_HANDLE = 4
_MNT_DETACH = 2

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP = 1, 4, 22
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_SECCOMP_MODE_FILTER = 2

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def syscall(number: int, *arguments: int | bytes | None) -> int:
    # variadic: ints must go as longs, else the upper half of the register is garbage
    passed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _check(_libc.syscall(ctypes.c_long(number), *passed), f"syscall {number}")


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def enter_namespace(fd: int, kind: int) -> None:
    _check(_libc.setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(result, f"mount {source} on {target}")


def mount_without_place(device: str, kind: str, flags: Iterable[str] = ()) -> int:
    """A handle of the root of the file system on this device; no path leads there."""
    context = syscall(_FSOPEN, kind.encode(), _CLOEXEC)
    try:
        syscall(_FSCONFIG, context, _SET_STRING, b"source", device.encode(), 0)
        for flag in flags:
            syscall(_FSCONFIG, context, _SET_FLAG, flag.encode(), None, 0)
        syscall(_FSCONFIG, context, _CREATE, None, None, 0)
        return syscall(_FSMOUNT, context, _CLOEXEC, MS_NOSUID | MS_NODEV)  # the same numbers mean the same here
    finally:
        os.close(context)


def write_out(handle: int) -> None:
    """All of this file system; raises OSError if some of it could not be written, also earlier."""
    _check(_libc.syncfs(handle), "syncfs")


def give_place(mounted: int, folder: str) -> None:
    """What `mount_without_place` made is at this path from now on, for everybody; the handle goes on."""
    here = -100  # AT_FDCWD
    syscall(_MOVE_MOUNT, mounted, b"", here, os.fsencode(folder), _FROM_HANDLE)


def take_place(folder: str) -> bool:
    """Nothing is mounted at this path any more; False if nothing was."""
    return bool(_libc.umount2(os.fsencode(folder), _MNT_DETACH) == 0)


def _prctl(option: int, value: int | ctypes.c_void_p, last: ctypes.c_void_p | None = None) -> None:
    first = ctypes.c_ulong(value) if isinstance(value, int) else value
    _check(_libc.prctl(option, first, last or ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)), "prctl")


def die_with_parent(signal: int) -> None:
    """Must follow a change of uid, which clears it; and it follows the forking *thread*, not the process."""
    _prctl(_PR_SET_PDEATHSIG, signal)


def adopt_orphans() -> None:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def no_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def become(uid: int, gid: int, groups: Iterable[int] = ()) -> None:
    """Give up root for good."""
    os.setgroups(list(groups))
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    # the change makes /proc/self belong to root, and our own namespaces could not be set up any more
    _prctl(_PR_SET_DUMPABLE, 1)


def hide_memory() -> None:
    """No other process of this user may look into this one."""
    _prctl(_PR_SET_DUMPABLE, 0)


def install_seccomp(program: bytes) -> None:
    """Filter this process and what it becomes; needs `no_new_privileges` first."""
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(instructions))
    holder = ctypes.create_string_buffer(header, len(header))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(holder)))
