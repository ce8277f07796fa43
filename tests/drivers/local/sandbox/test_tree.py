"""A job's processes all end with it, however they hide; and they get their chance to end well."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from hansa.drivers.local.launcher import processes

from .conftest import Bench, alive, heard

pytestmark = pytest.mark.asyncio(loop_scope="package")

DAEMONS = "for i in 1 2 3; do (setsid sh -c 'sleep {0} & sleep {0}' >/dev/null 2>&1 &) ; done; {1}"


async def test_daemons_end_at_the_wall(bench: Bench) -> None:
    if bench.sandbox.level.kill == "group":
        pytest.skip("this level cannot catch what leaves its process group")
    began = time.monotonic()
    _, exit = await bench.shell(DAEMONS.format("8.25", "sleep 8.25"), seconds=0.7)
    assert exit.reason == "timeout"
    assert time.monotonic() - began < 3
    assert alive("8.25") == []


async def test_daemons_end_with_the_job(bench: Bench) -> None:
    if bench.sandbox.level.kill == "group":
        pytest.skip("this level cannot catch what leaves its process group")
    text, exit = await bench.shell(DAEMONS.format("8.375", "sleep 0.1; echo done; exit 7"))
    assert (text, exit.code, exit.reason) == ("done\n", 7, "exit")
    assert alive("8.375") == []


@pytest.mark.parametrize("name", [r"State:\tZ", r"Uid:\t0", r"a\rUid:\t0"])
async def test_no_name_hides_a_daemon(bench: Bench, name: str) -> None:
    """What the kernel tells of a process begins with the name that it gave itself."""
    if bench.sandbox.level.kill == "group":
        pytest.skip("this level cannot catch what leaves its process group")
    script = f"""name=$(printf '{name}'); ln -s /bin/sleep "$name"; (setsid "./$name" 8.75 >/dev/null 2>&1 &); """
    _, exit = await bench.shell(f"{script} sleep 0.2; exit 7")
    assert exit.code == 7
    assert alive("8.75") == []


async def test_stop_lets_the_job_say_goodbye(bench: Bench) -> None:
    script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    process = await bench.start("sh", "-c", script)
    output = process.output()
    assert await anext(output) == b"ready\n"
    await process.stop(grace=8)
    rest = b"".join([chunk async for chunk in output])
    exit = await process.wait()
    assert b"bye" in rest
    assert (exit.code, exit.reason) == (5, "stopped")
    assert exit.seconds < 6


async def test_stop_waits_no_longer_than_the_grace(bench: Bench) -> None:
    process = await bench.start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    output = process.output()
    assert await anext(output) == b"ready\n"
    await process.stop(grace=0.3)
    exit = await process.wait()
    assert (exit.code, exit.reason) == (None, "stopped")
    assert exit.seconds < 4
    await output.aclose()  # type: ignore[attr-defined]


async def test_kill(bench: Bench) -> None:
    process = await bench.start("sleep", "8.5")
    await process.kill()
    exit = await process.wait()
    assert (exit.code, exit.reason) == (None, "killed")
    assert alive("8.5") == []
    await process.kill()  # harmless
    assert await heard(process) == ""


async def test_a_held_job_starts_when_released(bench: Bench) -> None:
    work = bench.directory("held")
    process = await bench.start("sh", "-c", "cat late; echo $0", "argument", workdir=work, hold=True, seconds=3)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await process.wait()
    (work / "late").write_text("written while held\n")
    (work / "late").chmod(0o644)
    await process.release()
    assert await heard(process) == "written while held\nargument\n"
    exit = await process.wait()
    assert (exit.code, exit.reason) == (0, "exit")
    assert exit.seconds < 2


async def test_a_held_job_can_be_stopped(bench: Bench) -> None:
    process = await bench.start("sh", "-c", "echo must not run", hold=True)
    await process.stop()
    assert await heard(process) == ""
    assert (await process.wait()).reason == "stopped"


async def test_a_held_job_that_died_may_be_released_and_no_other_job_notices(bench: Bench) -> None:
    """The launcher is stopped meanwhile, so that it hears of the release before it hears of the death."""
    folder, launcher = bench.directory("goes-on"), bench.sandbox.launcher_pid
    script = "echo up; while [ ! -e go ]; do sleep 0.05; done; echo went on"
    other = await bench.start("sh", "-c", script, "8.7", workdir=folder)
    held = await bench.start("sh", "-c", "echo must not run", hold=True)
    os.kill(launcher, signal.SIGSTOP)
    try:
        trees = [{child, *processes.descendants(child)} for child in processes.children(launcher)]
        killed = set[int]().union(*(tree for tree in trees if not tree & set(alive("8.7"))))
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        async with asyncio.timeout(5):
            while not all(map(is_dead, killed)):
                await asyncio.sleep(0.01)
        await held.release()
    finally:
        os.kill(launcher, signal.SIGCONT)
    async with asyncio.timeout(10):
        exit = await held.wait()
    assert (exit.code, exit.reason) == (137, "exit")
    (folder / "go").touch()
    assert await heard(other) == "up\nwent on\n"


def is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def test_the_exit_code_of_a_signal(bench: Bench) -> None:
    _, exit = await bench.shell("kill -KILL $$")
    assert (exit.code, exit.reason) == (137, "exit")
