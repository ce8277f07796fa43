"""How much memory does a job hold, where no cgroup counts it?

What its processes have written, a page that several have in common counted once, and what lies in its private file
systems of memory and in files of memory without a name. Whoever runs there may work against us: a process that lets
nobody look at its pages is counted by what the kernel tells everybody, which counts common pages again and again. What
the kernel holds for a job (pipes, sockets) is not seen.
"""

import contextlib
import os
from collections.abc import Collection

_KIB = 1024
_BLOCK = 512
_MEMORY_FILE = "/memfd:"
_SCRATCH = ("tmp", "dev/shm")


def exceeds(pids: Collection[int], most: int, *, scratch: bool) -> bool:
    """Whether these processes hold more together. `scratch`: they have file systems of memory of their own."""
    files = _files(pids) + (_scratch(pids) if scratch else 0)
    alone = [found for pid in pids if (found := _told(pid)) is not None]
    at_most = sum(own + swapped for own, _, swapped in alone) + max(sum(shared for _, shared, _ in alone), files)
    if at_most <= most:
        return False  # quick to see, and nearly always so
    exact = [found for pid in pids if (found := _exact(pid) or _told(pid)) is not None]
    held = sum(own + swapped for own, _, swapped in exact) + max(sum(shared for _, shared, _ in exact), files)
    return held > most


def _told(pid: int) -> tuple[int, int, int] | None:
    """Bytes of its own, shared, and swapped out; pages that it has in common with others count as its own."""
    found = _numbers(f"/proc/{pid}/status")
    if found is None:
        return None
    return found.get("RssAnon", 0), found.get("RssShmem", 0), found.get("VmSwap", 0)


def _exact(pid: int) -> tuple[int, int, int] | None:
    """The same with its part of what it has in common; None if it may not be looked at, or the kernel is too old."""
    found = _numbers(f"/proc/{pid}/smaps_rollup")
    if found is None or "Pss_Anon" not in found:
        return None
    return found["Pss_Anon"], found.get("Pss_Shmem", 0), found.get("SwapPss", 0)


def _numbers(path: str) -> dict[str, int] | None:
    """Lines like `RssAnon:  152 kB`, in bytes; None if there is no such file, or nothing in it."""
    found = {}
    try:
        with open(path, "rb") as lines:  # a process may give itself any name: as text it could be several lines
            for line in lines:
                name, _, rest = line.partition(b":")
                words = rest.split()
                if words[1:] == [b"kB"] and words[0].isdigit():
                    found[name.decode(errors="replace")] = int(words[0]) * _KIB
    except OSError:
        return None
    return found or None


def _files(pids: Collection[int]) -> int:
    """Bytes in files of memory that have no name and are open."""
    found: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended, or may not be looked at
            for fd in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{fd}"
                with contextlib.suppress(OSError):
                    if os.readlink(path).startswith(_MEMORY_FILE):
                        facts = os.stat(path)
                        found[facts.st_ino] = facts.st_blocks * _BLOCK
    return sum(found.values())


def _scratch(pids: Collection[int]) -> int:
    """Bytes in the job's own `/tmp` and `/dev/shm`, as those of its processes see them that may be looked at."""
    found: dict[int, int] = {}
    here = {os.stat("/").st_dev}
    for pid in pids:
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}/root").st_dev in here:
                continue  # it stands outside
            for name in _SCRATCH:
                path = f"/proc/{pid}/root/{name}"
                facts = os.statvfs(path)
                found[os.stat(path).st_dev] = (facts.f_blocks - facts.f_bfree) * facts.f_frsize
    return sum(found.values())
