"""What has this machine, and how busy is it? Read from /proc and the control groups this process lives in.

The manager asks once for the capacity it may promise (`capacity`) and again and again for `look`, which the status
page and the federation show.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hansa import resources
from hansa.kernel import quantities
from hansa.settings import JobSettings

_SHORTEST_WINDOW = 0.5  # seconds; over less, ticks of the kernel's clock are noise
_NO_LIMIT = 2**60


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    busy: int  # ticks, of all processors together
    total: int


class LocalNode:
    """This machine as one node of the cluster. `root` is where /proc and /sys are looked for."""

    def __init__(
        self,
        name: str,
        jobs: JobSettings,
        root: Path = Path("/"),
        now: Callable[[], float] = time.monotonic,
        promised: Callable[[], resources.Needs] = lambda: resources.Needs(0, 0),
    ) -> None:
        self.name = name
        self._clock = now
        self._proc = root / "proc"
        self._groups = root / "sys" / "fs" / "cgroup"
        self._jobs = jobs
        self._promised = promised
        self._before = self._now = self._sample()

    def adopt(self, jobs: JobSettings) -> None:
        """Other shares for jobs."""
        self._jobs = jobs

    def whole(self) -> resources.Needs:
        """What this machine has, whatever the settings give to jobs."""
        return resources.Needs(self._cpu(), self._memory())

    def largest(self) -> None:
        """One machine: what fits into it fits."""

    def capacity(self) -> resources.Needs:
        """How much jobs may use together: what the settings say, else what there is."""
        return self.capacity_with(self._jobs)

    def capacity_with(self, jobs: JobSettings) -> resources.Needs:
        """How much it would be with these."""
        cpu = quantities.millicores(jobs.cpu) if jobs.cpu else self._cpu()
        memory = quantities.size(jobs.memory) if jobs.memory else self._memory() * 9 // 10
        return resources.Needs(cpu, memory)

    def look(self) -> tuple[resources.Node, ...]:
        """As it is now; processor use is the average since about the last look."""
        capacity = self.capacity()
        facts = self._meminfo()
        used = facts["MemTotal"] - facts.get("MemAvailable", facts.get("MemFree", 0))
        promised = self._promised()
        seen = resources.Node(
            name=self.name,
            cpu=capacity.cpu,
            memory=capacity.memory,
            cpu_used=min(self._cpu_used(), capacity.cpu),
            memory_used=min(used, capacity.memory),
            cpu_requested=promised.cpu,
            memory_requested=promised.memory,
        )
        return (seen,)

    def _cpu_used(self) -> int:
        if self._clock() - self._now.at >= _SHORTEST_WINDOW:
            self._before, self._now = self._now, self._sample()
        total = self._now.total - self._before.total
        busy = self._now.busy - self._before.busy
        return max(0, busy) * (os.cpu_count() or 1) * 1000 // total if total > 0 else 0

    def _sample(self) -> _Sample:
        first = (self._proc / "stat").read_text().split("\n", 1)[0]
        ticks = [int(word) for word in first.split()[1:9]]  # guests are counted in user time already
        idle = ticks[3] + ticks[4]
        return _Sample(self._clock(), sum(ticks) - idle, sum(ticks))

    def _cpu(self) -> int:
        """Processors this process may run on, less what a control group takes away."""
        limit = len(os.sched_getaffinity(0)) * 1000
        for folder in self._own_groups("cpu"):
            quota = _numbers(folder / "cpu.max") or [
                *_numbers(folder / "cpu.cfs_quota_us"),
                *_numbers(folder / "cpu.cfs_period_us"),
            ]
            if len(quota) == 2 and 0 < quota[0] < _NO_LIMIT and quota[1] > 0:
                limit = min(limit, quota[0] * 1000 // quota[1])
        return max(limit, 1)

    def _memory(self) -> int:
        limit = self._meminfo()["MemTotal"]
        for folder in self._own_groups("memory"):
            for name in ("memory.max", "memory.limit_in_bytes"):
                for most in _numbers(folder / name):
                    limit = min(limit, most)
        return limit

    def _meminfo(self) -> dict[str, int]:
        lines = (self._proc / "meminfo").read_text().splitlines()
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        return {name: int(rest.split()[0]) * 1024 for name, rest in pairs}

    def _own_groups(self, controller: str) -> Iterator[Path]:
        """The control groups this process is in, from its own up to the top: each of them limits it."""
        try:
            lines = (self._proc / "self" / "cgroup").read_text().splitlines()
        except OSError:
            return
        for line in lines:
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            top = self._groups / controller if controllers else self._groups
            steps = [step for step in path.split("/") if step not in ("", "..")]
            for depth in range(len(steps), -1, -1):
                yield top.joinpath(*steps[:depth])


def _numbers(path: Path) -> list[int]:
    """The numbers in a small file; "max" is a very large one, a missing file has none."""
    try:
        words = path.read_text().split()
    except OSError:
        return []
    return [_NO_LIMIT if word == "max" else int(word) for word in words]
