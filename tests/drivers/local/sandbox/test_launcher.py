"""The launcher's own life: who may start it, and what is left when it or the manager dies."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hansa.drivers.local.sandbox import (
    Bind,
    Launch,
    LaunchFailed,
    LaunchInvalid,
    Sandbox,
    SandboxLost,
    SandboxRefused,
    probe,
)

from .conftest import CEILINGS, Bench, alive, cgroups_of, new_uid_base, opened

pytestmark = pytest.mark.asyncio(loop_scope="package")

MANAGER = """
import asyncio, sys
from pathlib import Path
from hansa.drivers.local.sandbox import Ceiling, Launch, Sandbox

async def main(instance, base, home, level, cgroups):
    ceiling = Ceiling(level=level, cgroups=cgroups == "True")
    sandbox = await Sandbox.open(instance=instance, uid_base=int(base), run_dir=Path(home, "run"), ceiling=ceiling)
    for number in range(3):
        work = Path(home, f"work-{number}"); work.mkdir()
        script = "(setsid sleep 30.1875 >/dev/null 2>&1 &); sleep 30.1875"
        await sandbox.start(Launch(id=f"job-{number}", argv=("sh", "-c", script), env={}, workdir=work,
                                   cpu=500, memory=64 << 20, seconds=60))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


async def until(condition: Callable[[], bool], seconds: float) -> float:
    """How long it took; the kernel sends no event for 'the last of those processes is gone'."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        await asyncio.sleep(0.01)
    return time.monotonic() - began


@pytest.mark.parametrize(("level", "cgroups"), [("full", True), ("namespaces", False), ("landlock", True)])
async def test_everything_ends_with_the_manager(level: str, cgroups: bool, home: Path) -> None:
    base = new_uid_base()
    instance = f"test-{os.getpid()}-{base}"
    place = home / f"manager-{base}"
    place.mkdir()
    source = Path(__file__).parents[4] / "src"
    manager = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MANAGER, instance, str(base), str(place), level, str(cgroups)),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(source)},
    )
    try:
        assert manager.stdout is not None
        assert await asyncio.wait_for(manager.stdout.readline(), 20) == b"ready\n"
        await until(lambda: len(alive("30.1875")) >= 6, 5)
    finally:
        if manager.returncode is None:
            manager.kill()
        await manager.wait()
    took = await until(lambda: not alive("30.1875"), 5)
    assert took < 0.5
    await until(lambda: not cgroups_of(instance), 2)
    await until(lambda: not alive(instance), 2)


@pytest.mark.parametrize("name", CEILINGS)
async def test_a_new_launcher_clears_up_after_a_dead_one(name: str, home: Path) -> None:
    async with opened(name, home) as bench:
        marker = f"6.{bench.uid_base}"
        script = f"(setsid sleep {marker} >/dev/null 2>&1 &); echo up; exec sleep {marker}"
        process = await bench.start("sh", "-c", script)
        output = process.output()
        assert await anext(output) == b"up\n"
        os.kill(bench.sandbox.launcher_pid, signal.SIGKILL)
        await asyncio.wait_for(bench.sandbox.lost.wait(), 3)
        exit = await asyncio.wait_for(process.wait(), 3)
        assert (exit.code, exit.reason) == (None, "lost")
        await output.aclose()  # type: ignore[attr-defined]
        with pytest.raises(SandboxLost):
            await bench.start("true")
        await bench.sandbox.close()
        bench.sandbox = await Sandbox.open(
            instance=bench.instance, uid_base=bench.uid_base, run_dir=bench.run_dir, ceiling=bench.ceiling
        )
        if bench.sandbox.level.kill == "group":
            for survivor in alive(marker):
                os.kill(survivor, signal.SIGKILL)
        await until(lambda: not alive(marker), 2)
        text, _ = await bench.shell("echo again")
        assert text == "again\n"


async def test_only_one_launcher_per_instance(full: Bench) -> None:
    with pytest.raises(SandboxRefused, match="another launcher") as refusal:
        await Sandbox.open(instance=full.instance, uid_base=new_uid_base(), run_dir=full.run_dir)
    assert refusal.value.hint


async def test_uid_ranges_may_not_overlap(full: Bench) -> None:
    with pytest.raises(SandboxRefused, match="uids"):
        await Sandbox.open(instance="other", uid_base=full.uid_base + 255, run_dir=full.home / "other")
    with pytest.raises(SandboxRefused, match="nobody in /etc/passwd"):
        await Sandbox.open(instance="other", uid_base=65_500, run_dir=full.home / "other")


async def test_a_bad_workdir(bench: Bench) -> None:
    if bench.ceiling.user is not None and bench.sandbox.level.filesystem == "bwrap":
        text, exit = await bench.run("true", workdir=bench.home / "missing")
        assert exit.code != 0
        assert "missing" in text
        return
    with pytest.raises(LaunchFailed, match="missing"):
        await bench.run("true", workdir=bench.home / "missing")
    text, _ = await bench.shell("echo still well")
    assert text == "still well\n"


async def test_a_missing_program(bench: Bench) -> None:
    text, exit = await bench.run("no-such-program")
    assert exit.code in (1, 126, 127)
    assert exit.reason == "exit"
    assert "no-such-program" in text


async def test_impossible_wishes_are_refused(full: Bench) -> None:
    with pytest.raises(LaunchInvalid, match="no id"):
        await full.sandbox.start(Launch("../x", ("true",), {}, full.home, cpu=1, memory=1))
    with pytest.raises(LaunchInvalid, match="bound"):
        await full.run("true", binds=(Bind(full.home, "/job/../etc"),))
    with pytest.raises(LaunchInvalid, match="no program"):
        await full.run()
    with pytest.raises(LaunchInvalid, match="limit of nothing"):
        await full.run("true", memory=0)
    with pytest.raises(LaunchInvalid, match="bytes"):
        await full.run("true", env={"BIG": "x" * 300_000})
    text, _ = await full.shell("echo ${#BIG}", env={"BIG": "x" * 100_000})
    assert text == "100000\n"


async def test_probe_leaves_nothing_behind() -> None:
    before = set(Path("/sys/fs/cgroup").glob("*/hansa-probe-*"))
    level = await probe()
    assert level.name in ("full", "namespaces", "landlock", "process")
    assert set(Path("/sys/fs/cgroup").glob("*/hansa-probe-*")) == before


MASKS = {
    "no v2 tree": ("umount /sys/fs/cgroup/unified", "full cgroup-v1 freezer timeout"),
    "no cgroups": ("mount -t tmpfs -o ro none /sys/fs/cgroup", "namespaces rlimits pidns timeout"),
    "no bubblewrap": ("mount --bind /bin/false $(command -v bwrap)", "landlock cgroup-v1 cgroup timeout"),
}
MASKED = """
import asyncio, sys
from pathlib import Path
from hansa.drivers.local.sandbox import Launch, Sandbox

async def main(instance, base, home):
    sandbox = await Sandbox.open(instance=instance, uid_base=int(base), run_dir=Path(home, "run"))
    script = f"(setsid sleep 7.{base} >/dev/null 2>&1 &); exec sleep 7.{base}"
    launch = Launch("job", ("sh", "-c", script), {}, Path(home), cpu=500, memory=64 << 20, seconds=0.5)
    exit = await (await sandbox.start(launch)).wait()
    print(sandbox.level.name, sandbox.level.limits, sandbox.level.kill, exit.reason)
    await sandbox.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("mask", MASKS)
async def test_a_poorer_machine_is_noticed(mask: str, home: Path) -> None:
    if os.geteuid() != 0 or not Path("/sys/fs/cgroup/unified").is_dir():
        pytest.skip("needs a machine to take something from")
    base = new_uid_base()
    place = home / f"masked-{base}"
    place.mkdir()
    place.chmod(0o755)
    hide, expected = MASKS[mask]
    source = Path(__file__).parents[4] / "src"
    instance = f"masked-{base}"
    manager = await asyncio.create_subprocess_exec(
        *("unshare", "--mount", "sh", "-c", f'{hide} && exec "$@"', "sh"),
        *(sys.executable, "-c", MASKED, instance, str(base), str(place)),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(source)},
    )
    text, _ = await asyncio.wait_for(manager.communicate(), 20)
    assert text.decode().strip() == expected
    assert alive(f"7.{base}") == []
    assert cgroups_of(instance) == []


async def test_closing_ends_the_jobs(home: Path) -> None:
    async with opened("full", home) as bench:
        process = await bench.start("sleep", "8.3125")
        await bench.sandbox.close()
        assert (await process.wait()).reason == "killed"
        assert not bench.sandbox.lost.is_set()
        assert alive("8.3125") == []
