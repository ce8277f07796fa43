"""Does the node tell the truth about this machine, and do limits and settings count?"""

import os
from pathlib import Path

import pytest

from hansa import resources
from hansa.drivers.local.node import LocalNode
from hansa.settings import JobSettings

GIB = 2**30
MEMINFO = f"MemTotal: {8 * GIB // 1024} kB\nMemFree: 1 kB\nMemAvailable: {6 * GIB // 1024} kB\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine of 8 GiB, written down by hand."""
    write(tmp_path, "proc/meminfo", MEMINFO)
    write(tmp_path, "proc/stat", "cpu 100 0 100 800 0 0 0 0 0 0\n")
    write(tmp_path, "proc/self/cgroup", "0::/\n")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_this_very_machine() -> None:
    (seen,) = LocalNode("here", JobSettings()).look()
    assert seen.name == "here"
    assert 0 < seen.cpu <= (os.cpu_count() or 1) * 1000
    assert 0 < seen.memory_used < seen.memory
    assert 0 <= seen.cpu_used <= seen.cpu
    assert seen.ready


def test_nine_tenths_of_the_memory_are_promised(root: Path) -> None:
    assert LocalNode("n", JobSettings(), root).capacity().memory == 8 * GIB * 9 // 10
    assert LocalNode("n", JobSettings(), root).look()[0].memory_used == 2 * GIB


def test_settings_override_what_is_there(root: Path) -> None:
    node = LocalNode("n", JobSettings(cpu="3500m", memory="4Gi"), root)
    assert node.capacity() == resources.Needs(3500, 4 * GIB)


def test_limits_of_a_control_group_count_also_those_above(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/outer/inner\n")
    write(root, "sys/fs/cgroup/outer/cpu.max", "50000 100000\n")
    write(root, "sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n")
    write(root, "sys/fs/cgroup/outer/inner/memory.max", f"{GIB}\n")
    write(root, "sys/fs/cgroup/outer/memory.max", "max\n")
    assert LocalNode("n", JobSettings(), root).capacity() == resources.Needs(500, GIB * 9 // 10)


def test_limits_of_the_older_kind_count(root: Path) -> None:
    write(root, "proc/self/cgroup", "4:memory:/box\n3:cpu,cpuacct:/box\n0::/\n")
    write(root, "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "25000\n")
    write(root, "sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n")
    write(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    write(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    write(root, "sys/fs/cgroup/memory/box/memory.limit_in_bytes", f"{2 * GIB}\n")
    write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", f"{2**63 - 4096}\n")
    assert LocalNode("n", JobSettings(), root).capacity() == resources.Needs(250, 2 * GIB * 9 // 10)


def test_use_is_that_of_the_last_moments(root: Path) -> None:
    moments = iter([0.0, 0.1, 2.0, 2.0])
    node = LocalNode("n", JobSettings(cpu="64"), root, now=lambda: next(moments))
    assert node.look()[0].cpu_used == 0, "too early to tell"
    write(root, "proc/stat", "cpu 150 0 100 850 0 0 0 0 0 0\n")
    assert node.look()[0].cpu_used == (os.cpu_count() or 1) * 500
