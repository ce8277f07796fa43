"""Variables of a user are for the script alone: no program outside of the walls ever loads what they name."""

from pathlib import Path

import pytest

from hansa.drivers.local.launcher import processes

from .conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="package")

# Everything glibc's loader takes from the environment (ld.so(8)), with a value that would show.
LOADER = {
    "LD_PRELOAD": "libm.so.6",
    "LD_AUDIT": "libm.so.6",
    "LD_LIBRARY_PATH": "/job",
    "LD_BIND_NOW": "1",
    "LD_BIND_NOT": "1",
    "LD_DEBUG": "all",
    "LD_DEBUG_OUTPUT": "/job/loaded",
    "LD_DYNAMIC_WEAK": "1",
    "LD_HWCAP_MASK": "1",
    "LD_ORIGIN_PATH": "/job",
    "LD_POINTER_GUARD": "0",
    "LD_PROFILE": "libc.so.6",
    "LD_PROFILE_OUTPUT": "/job",
    "LD_SHOW_AUXV": "1",
    "LD_TRACE_LOADED_OBJECTS": "1",
    "LD_TRACE_PRELINKING": "1",
    "LD_USE_LOAD_BIAS": "1",
    "LD_VERBOSE": "1",
    "LD_WARN": "1",
    "LD_PREFER_MAP_32BIT_EXEC": "1",
    "GLIBC_TUNABLES": "glibc.malloc.check=3",
    "GCONV_PATH": "/job",
    "GETCONF_DIR": "/job",
    "HOSTALIASES": "/job/hosts",
    "LOCALDOMAIN": "evil",
    "LOCPATH": "/job",
    "MALLOC_TRACE": "/job/trace",
    "NIS_PATH": "/job",
    "NLSPATH": "/job",
    "RESOLV_HOST_CONF": "/job/conf",
    "RES_OPTIONS": "debug",
    "TMPDIR": "/job",
    "TZDIR": "/job",
}


def outside(bench: Bench) -> list[int]:
    """The processes of the job that still see the machine: the launcher's own children, but for the spare one."""
    return [pid for pid in processes.children(bench.sandbox.launcher_pid) if _is_at_work(pid)]


def _is_at_work(pid: int) -> bool:
    """A spare that waits for the next order has the launcher's command line."""
    try:
        return b"launcher.main" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


async def test_no_variable_reaches_the_program_that_builds_the_walls(bench: Bench) -> None:
    if bench.sandbox.level.filesystem != "bwrap":
        pytest.skip("no program builds walls at this level")
    process = await bench.start("/bin/true", env=LOADER, hold=True)
    try:
        assert outside(bench)
        for pid in outside(bench):
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            assert [name for name in LOADER if name.encode() + b"=" in environment] == []
            assert "libm.so" not in Path(f"/proc/{pid}/maps").read_text()
    finally:
        await process.kill()
        await process.wait()


async def test_they_reach_the_script(bench: Bench) -> None:
    wanted = {name: value for name, value in LOADER.items() if not name.startswith(("LD_", "GLIBC"))}
    text, exit = await bench.run("env", env=wanted | {"ODD": "a\nb 'c' \"d\" $HOME \\ ä --ro-bind / /host"})
    assert exit.code == 0
    assert all(f"{name}={value}" in text for name, value in wanted.items() if name != "TMPDIR")
    assert "ODD=a\nb 'c' \"d\" $HOME \\ ä --ro-bind / /host\n" in text


async def test_a_library_of_the_job_is_loaded_inside_only(bench: Bench) -> None:
    """What is preloaded runs in the script; it sees what the script sees."""
    if bench.sandbox.level.filesystem != "bwrap":
        pytest.skip("this level shows the machine's files by name")
    text, _ = await bench.run("/bin/cat", "/proc/self/maps", env={"LD_PRELOAD": "libm.so.6"})
    assert "libm.so" in text
    loaded = bench.directory("debug")
    await bench.run("/bin/true", env={"LD_DEBUG": "all", "LD_DEBUG_OUTPUT": "/job/loaded"}, workdir=loaded)
    written = "".join(path.read_text() for path in loaded.iterdir())
    assert "/true" in written
    assert "bwrap" not in written
    assert "libcap" not in written, "bubblewrap's own library"


async def test_no_new_privileges_before_the_walls_are_built(bench: Bench) -> None:
    process = await bench.start("/bin/sleep", "5", hold=True)
    try:
        assert outside(bench) or bench.sandbox.level.filesystem != "bwrap"
        for pid in outside(bench):
            assert "NoNewPrivs:\t1" in Path(f"/proc/{pid}/status").read_text()
    finally:
        await process.kill()
        await process.wait()
