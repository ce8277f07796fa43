"""How are a job's memory, processor time and processes limited, counted and killed? By cgroups, if there are.

Three layouts exist: v2 alone, v1 alone, and hybrid (limits in v1, an empty v2 tree at `unified`, whose
`cgroup.kill` works all the same). Which one can be used is found by trying.
"""

import contextlib
import os
import signal
from dataclasses import dataclass
from typing import Literal

from . import processes

ROOT = "/sys/fs/cgroup"
_PERIOD = 100_000  # microseconds
_SHORTEST_QUOTA = 1_000  # the kernel refuses less
LEAST_MEMORY = 8 << 20  # what building the sandbox takes, before the program


@dataclass(frozen=True)
class Tree:
    """The directories of this launcher, below which each job gets a group of its own."""

    version: Literal["v1", "v2"]
    bases: dict[str, str]  # by controller; "unified" is the v2 tree

    @property
    def kills(self) -> Literal["cgroup", "freezer"]:
        return "cgroup" if "unified" in self.bases else "freezer"

    def leftovers(self) -> set[str]:
        return {name for base in self.bases.values() for name in os.listdir(base) if name.startswith("job-")}

    def remove(self) -> None:
        for base in self.bases.values():
            with contextlib.suppress(OSError):  # another try at the next start
                os.rmdir(base)


def find(name: str) -> Tree | None:
    """The tree this process may use, with a trial group made and removed; None without cgroups."""
    tree = None
    try:
        tree = _find_v2(name) if os.path.exists(f"{ROOT}/cgroup.controllers") else _find_v1(name)
        trial = Group(tree, "trial")
        trial.create()
        trial.limit(memory=64 << 20, cpu=100, pids=16)
        joined = _joins(trial)
        if trial.remove() and joined:
            return tree
    except OSError:
        pass
    if tree is not None:
        tree.remove()
    return None


def _find_v1(name: str) -> Tree:
    bases = {}
    for controller in ("memory", "cpu", "pids", "cpuacct", "unified", "freezer"):
        parent = f"{ROOT}/{controller}"
        if controller == "freezer" and "unified" in bases:
            break  # every hierarchy costs, and the v2 tree kills better
        if controller in ("cpuacct", "unified") and not os.path.exists(f"{parent}/cgroup.procs"):
            continue
        os.makedirs(f"{parent}/{name}", exist_ok=True)
        if controller == "unified" and not os.path.exists(f"{parent}/{name}/cgroup.kill"):  # before Linux 5.14
            os.rmdir(f"{parent}/{name}")
            continue
        bases[controller] = f"{parent}/{name}"
    return Tree("v1", bases)


def _find_v2(name: str) -> Tree:
    with open("/proc/self/cgroup") as memberships:
        own = memberships.read().split("0::", 1)[1].split("\n", 1)[0]
    top = ROOT + own.rstrip("/").removesuffix("/hansa-manager")
    if os.path.exists(f"{top}/cgroup.type"):  # not the machine's root: processes may live in leaves only
        os.makedirs(f"{top}/hansa-manager", exist_ok=True)
        for pid in _read(f"{top}/cgroup.procs").split():
            _write(f"{top}/hansa-manager/cgroup.procs", pid)
    base = f"{top}/{name}"
    os.makedirs(base, exist_ok=True)
    for directory in (top, base):
        _write(f"{directory}/cgroup.subtree_control", "+cpu +memory +pids")
    return Tree("v2", {"unified": base})


class Group:
    """The cgroup of one job: one directory in v2, one per controller in v1."""

    def __init__(self, tree: Tree, name: str) -> None:
        self._version = tree.version
        self._paths = {controller: f"{base}/{name}" for controller, base in tree.bases.items()}
        # joint mounts (cpu,cpuacct) show one directory under two names
        self._directories = list({os.path.realpath(path): path for path in self._paths.values()}.values())

    def create(self) -> None:
        for directory in self._directories:
            os.makedirs(directory, exist_ok=True)

    def limit(self, *, memory: int, cpu: int, pids: int) -> None:
        """`cpu` in thousandths of a processor."""
        memory = max(LEAST_MEMORY, memory)
        quota = max(_SHORTEST_QUOTA, cpu * _PERIOD // 1000)
        if self._version == "v2":
            self._set("unified", "memory.max", memory)
            self._set("unified", "memory.swap.max", 0, optional=True)
            self._set("unified", "memory.oom.group", 1, optional=True)
            self._set("unified", "cpu.max", f"{quota} {_PERIOD}")
            self._set("unified", "pids.max", pids)
        else:
            self._set("memory", "memory.limit_in_bytes", memory)
            self._set("memory", "memory.memsw.limit_in_bytes", memory, optional=True)
            self._set("cpu", "cpu.cfs_period_us", _PERIOD)
            self._set("cpu", "cpu.cfs_quota_us", quota)
            self._set("pids", "pids.max", pids)

    def join(self) -> None:
        """Move the calling process in; needs root, or a delegated v2 tree."""
        for directory in self._directories:
            _write(f"{directory}/cgroup.procs", 0)

    def members(self) -> set[int]:
        found = set()
        for directory in self._directories:
            with contextlib.suppress(FileNotFoundError):
                found |= {int(pid) for pid in _read(f"{directory}/cgroup.procs").split()}
        return found

    def kill(self) -> None:
        if "unified" in self._paths and os.path.exists(f"{self._paths['unified']}/cgroup.kill"):
            _write(f"{self._paths['unified']}/cgroup.kill", 1)  # atomic: no fork escapes
            return
        self._freeze("FROZEN")  # nobody forks away meanwhile
        for pid in self.members():
            processes.signal_process(pid, signal.SIGKILL)
        self._freeze("THAWED")  # the signals act now

    def oom_kills(self) -> int:
        path = "unified", "memory.events"
        if self._version == "v1":
            path = "memory", "memory.oom_control"
        return self._counter(*path, "oom_kill") or 0

    def cpu_seconds(self) -> float | None:
        with contextlib.suppress(OSError):
            if "cpuacct" in self._paths:
                return int(_read(f"{self._paths['cpuacct']}/cpuacct.usage")) / 1e9
            if "unified" in self._paths:
                used = self._counter("unified", "cpu.stat", "usage_usec")
                return None if used is None else used / 1e6
        return None

    def remove(self) -> bool:
        """Take the directories away; False while a process or its remains are still inside."""
        gone = True
        for directory in self._directories:
            try:
                os.rmdir(directory)
            except FileNotFoundError:
                pass
            except OSError:
                gone = False
        return gone

    def _set(self, controller: str, file: str, value: int | str, *, optional: bool = False) -> None:
        path = f"{self._paths[controller]}/{file}"
        if not optional or os.path.exists(path):  # kernels without swap accounting lack the swap files
            _write(path, value)

    def _counter(self, controller: str, file: str, key: str) -> int | None:
        try:
            lines = _read(f"{self._paths[controller]}/{file}").splitlines()
        except OSError:
            return None
        found = dict(line.split(maxsplit=1) for line in lines).get(key)
        return None if found is None else int(found)

    def _freeze(self, state: str) -> None:
        if "freezer" in self._paths:
            _write(f"{self._paths['freezer']}/freezer.state", state)


def _joins(group: Group) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            group.join()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()


def _write(path: str, value: int | str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)
