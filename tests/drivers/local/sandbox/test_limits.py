"""What a job may use: memory, processor, processes, time."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .conftest import Bench, alive

pytestmark = pytest.mark.asyncio(loop_scope="package")

PIDS = Path("/sys/fs/cgroup/pids")


async def test_memory(bench: Bench) -> None:
    text, exit = await bench.python("x = bytearray(600 << 20); print('got it')", memory=64 << 20)
    assert "got it" not in text
    if bench.sandbox.level.limits == "rlimits":
        assert "MemoryError" in text
        assert exit.code == 1
    else:
        assert exit.reason == "oom"


TOGETHER = """
import ctypes, mmap, os, sys, time
def hold():
    if sys.argv[1] == "hidden": ctypes.CDLL(None).prctl(4, 0)  # nobody may look at its pages
    kept = bytearray(os.urandom(1)) * (40 << 20); time.sleep(6); print("HELD", len(kept), flush=True); os._exit(0)
if sys.argv[1] == "files":
    for name in ("/tmp/a", "/dev/shm/b"):
        with open(name, "wb") as file: file.write(b"x" * (60 << 20))
elif sys.argv[1] == "memfd":
    for number in range(6): os.write(os.memfd_create("m"), b"x" * (40 << 20))
elif sys.argv[1] == "shared":
    kept = mmap.mmap(-1, 120 << 20); kept[:] = b"x" * (120 << 20)
else:
    for number in range(6): os.fork() or hold()
time.sleep(6); print("HELD", flush=True)
"""


@pytest.mark.parametrize("how", ["plain", "hidden", "files", "memfd", "shared"])
async def test_memory_of_all_processes_together(bench: Bench, how: str) -> None:
    if bench.sandbox.level.filesystem != "bwrap" and how == "files":
        pytest.skip("its scratch files are on disk")
    text, exit = await bench.run("/usr/bin/python3", "-c", TOGETHER, how, memory=100 << 20, seconds=15)
    assert exit.reason == "oom", (exit, text)
    if bench.sandbox.level.limits == "rlimits":  # cgroups may end one of them only, and hold the others
        assert "HELD" not in text


async def test_pages_in_common_count_once(bench: Bench) -> None:
    script = (
        "import os, time\nkept = bytearray(os.urandom(1)) * (60 << 20)\n"
        "pids = [os.fork() or (time.sleep(1), os._exit(0)) for _ in range(6)]\n"
        "for pid in pids: os.waitpid(pid, 0)\nprint('shared', len(kept))"
    )
    text, exit = await bench.run("/usr/bin/python3", "-c", script, memory=100 << 20)
    assert (text.split(), exit.reason, exit.code) == (["shared", str(60 << 20)], "exit", 0)


async def test_processor_share(bench: Bench) -> None:
    if bench.sandbox.level.limits == "rlimits":
        pytest.skip("rlimits know no share of a processor")
    busy = "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
    text, exit = await bench.python(busy, cpu=300)
    assert 0.2 < float(text) < 0.75
    assert exit.cpu_seconds is not None
    assert 0.2 < exit.cpu_seconds < 0.95


async def test_the_smallest_share_still_runs(full: Bench) -> None:
    _, exit = await full.run("true", cpu=1)
    assert exit.code == 0


async def test_wall_time(bench: Bench) -> None:
    began = time.monotonic()
    _, exit = await bench.run("sleep", "9.125", seconds=0.5)
    assert exit.reason == "timeout"
    assert exit.code is None
    assert 0.45 < exit.seconds < 2
    assert time.monotonic() - began < 3
    assert alive("9.125") == []


async def test_processes(bench: Bench) -> None:
    script = "i=0; while [ $i -lt 100 ]; do sleep 4.0625 & i=$((i+1)); done; echo all; wait"
    with outer_limit(bench):
        text, _ = await bench.shell(script, pids=20, seconds=3)
    assert "fork" in text.lower() or "resource" in text.lower(), text
    assert "all" not in text
    assert alive("4.0625") == []


async def test_a_fork_loop_ends_in_time(bench: Bench) -> None:
    if bench.sandbox.level.kill == "group":
        pytest.skip("this level cannot catch what leaves its process group")
    if not PIDS.is_dir():
        pytest.skip("no outer limit to try it under")
    script = "import os, time\nwhile True:\n try: os.fork()\n except OSError: time.sleep(0.01)"
    with outer_limit(bench):
        process = await bench.start("/usr/bin/python3", "-c", script, "fork-loop-marker", pids=20, seconds=1)
        exit = await process.wait()
        assert exit.reason == "timeout"
        assert exit.seconds < 3
        assert alive("fork-loop-marker") == []


@contextmanager
def outer_limit(bench: Bench) -> Iterator[None]:
    """Should the limit under test fail, the machine survives: an outer one of 300 processes holds."""
    if not PIDS.is_dir() or os.geteuid() != 0:
        yield
        return
    own = PIDS / f"hansa-{bench.instance}-{bench.uid_base}"
    if own.is_dir():  # jobs move to their own groups below this one
        (own / "pids.max").write_text("300")
        yield
        return
    outer = PIDS / f"outer-{bench.instance}"
    outer.mkdir()
    launcher = bench.sandbox.launcher_pid
    try:
        (outer / "pids.max").write_text("300")
        (outer / "cgroup.procs").write_text(str(launcher))
        yield
    finally:
        (PIDS / "cgroup.procs").write_text(str(launcher))
        for pid in (outer / "cgroup.procs").read_text().split():
            (PIDS / "cgroup.procs").write_text(pid)
        outer.rmdir()
