"""Which processes belong to whom? Answers from /proc, for the cases in which no cgroup can tell."""

import contextlib
import os
import signal
from collections.abc import Collection


def signal_process(pid: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def signal_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def of_uids(uids: Collection[int]) -> set[int]:
    """Every living process of these users.

    The launcher signals them one by one: `kill(-1)` would be shorter, and from a process whose real uid is 0
    it would end the machine.
    """
    return {pid for pid in _all() if _uid(pid) in uids}


def kill_uids(uids: Collection[int], passes: int = 500) -> None:
    """Until none is left; the limit on processes per user bounds what a fork bomb can add between passes."""
    for _ in range(passes):
        left = of_uids(uids)
        if not left:
            return
        for pid in left:
            signal_process(pid)


def children(pid: int) -> set[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as listing:
            return {int(child) for child in listing.read().split()}
    except ProcessLookupError:  # it ended while we read
        return set()
    except FileNotFoundError:
        if not os.path.exists(f"/proc/{pid}"):
            return set()
        return {other for other in _all() if _parent(other) == pid}  # a kernel without CONFIG_PROC_CHILDREN


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    front = children(pid)
    while front:
        found |= front
        front = {grandchild for child in front for grandchild in children(child)} - found
    return found


def of_session(leader: int) -> set[int]:
    """Every process of the session that this one leads, also those whose parents are gone."""
    found = set()
    for pid in _all():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(pid) == leader:
                found.add(pid)
    return found


def is_namespaced(pid: int) -> bool:
    """True if the process lives in a pid namespace below ours."""
    return _namespace_depth(pid) > _namespace_depth(os.getpid())


def _namespace_depth(pid: int) -> int:
    return len(_status(pid).get(b"NSpid", b"").split())


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _uid(pid: int) -> int | None:
    told = _status(pid)
    if not told or told[b"State"].startswith(b"Z"):
        return None
    return int(told[b"Uid"].split()[0])


def _status(pid: int) -> dict[bytes, bytes]:
    """What the kernel tells, by line; nothing if it is gone. Never to be searched as a whole: the first line holds a
    name that the process gave itself, and it may be any text but a newline."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            lines = [line.partition(b":") for line in status]
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {key: value.strip() for key, _, value in lines}


def _parent(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None
