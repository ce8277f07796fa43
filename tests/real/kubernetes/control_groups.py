"""How much may a cluster with all its pods take of this machine, and how do we find every process of it?

Control groups of version 1, one group of a cluster's name in every hierarchy: kubelet puts pods below it, and the rest
of the cluster is in its child `bottle`. The limits hold for all of it together: a fork storm in some test must not take
the machine's process numbers. Version 2 alone (no hierarchy of version 1) is not supported.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

MOST_PROCESSES = 3000
MOST_MEMORY = 4 << 30

_REMOVAL_SECONDS = 20.0
_INNER = "bottle"
_LIMITED = ("pids", "memory")


@dataclass(frozen=True, slots=True)
class Groups:
    name: str

    def make(self) -> None:
        for hierarchy, controllers in hierarchies().items():
            group = hierarchy / self.name
            group.mkdir()
            if "cpuset" in controllers:  # a new group may use no processor at all until it is told which
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (group / file).write_text((hierarchy / file).read_text())
            if "pids" in controllers:
                (group / "pids.max").write_text(str(MOST_PROCESSES))
            if "memory" in controllers:
                (group / "memory.limit_in_bytes").write_text(str(MOST_MEMORY))
        for entry in self.entries():
            entry.parent.mkdir(exist_ok=True)

    def entries(self) -> list[Path]:
        """Files into which a process writes its number to be in the cluster's limits, and its children with it."""
        return [
            hierarchy / self.name / _INNER / "cgroup.procs"
            for hierarchy, controllers in hierarchies().items()
            if controllers.intersection(_LIMITED)
        ]

    def folders(self) -> list[Path]:
        """What there is of it now."""
        return [group for hierarchy in hierarchies() if (group := hierarchy / self.name).is_dir()]

    def members(self) -> set[int]:
        found: set[int] = set()
        for group in self.folders():
            for path in [group, *group.rglob("*/")]:
                with contextlib.suppress(OSError):  # a pod's group may leave while we look
                    found.update(map(int, (path / "cgroup.procs").read_text().split()))
        return found

    def remove(self) -> None:
        """Ends what is still in the group and waits until the kernel has let go of it."""
        deadline = time.monotonic() + _REMOVAL_SECONDS
        while groups := self.folders():
            for number in self.members():
                self._kill(number)
            for group in groups:
                for folder, _, _ in os.walk(group, topdown=False):
                    with contextlib.suppress(OSError):  # the last process is still on its way out
                        os.rmdir(folder)
            if time.monotonic() > deadline:
                raise RuntimeError(f"control groups {self.name} cannot be removed; in them are {self.members()}")
            if self.folders():
                time.sleep(0.02)

    def _kill(self, number: int) -> None:
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(number)
            try:
                # The number may have gone to another process since we read it; the handle names one for good.
                if f"/{self.name}" in Path("/proc", str(number), "cgroup").read_text():
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
            finally:
                os.close(handle)


def hierarchies() -> dict[Path, frozenset[str]]:
    """Where this machine's hierarchies of version 1 are mounted, and what each controls."""
    found: dict[Path, frozenset[str]] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup":
            found[Path(place)] = frozenset(options.split(","))
    return found


def hindrance() -> str:
    """Why no cluster can be limited here; "" if it can."""
    there = frozenset[str]().union(*hierarchies().values())
    missing = [name for name in (*_LIMITED, "cpuset") if name not in there]
    return f"no control groups of version 1 for {', '.join(missing)}" if missing else ""
