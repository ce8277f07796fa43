"""What a job may write where folders have no limit of their own: attacks on the one who looks, at every level."""

import os
import subprocess
from pathlib import Path

import pytest

from hansa.drivers.local.launcher import usage
from hansa.drivers.local.sandbox import Bind, Exit, Watched

from .conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="package")

MIB = 2**20
LIMIT = 16 * MIB
# A machine that is busy looks seldom; a disk writes a gibibyte a second. Yet none of the attacks below gets near this.
BOUND = 640 * MIB
MANY = "n=0; while [ $n -lt 2000 ]; do head -c 1M /dev/zero > big-$n; n=$((n+1)); done"
ATTACKS = {
    "many-files": MANY,
    "many-names": "mkdir d; cd d; n=0; while [ $n -lt 200000 ]; do : > $n; n=$((n+1)); done",
    "closed-folder": "mkdir d; cd d; chmod 000 .; python3 - <<'E'\n"
    "import os\n"
    "d = os.open('/proc/self/cwd', os.O_PATH)\n"
    "os.chmod('/proc/self/cwd', 0o300)\n"
    "for n in range(20000):\n"
    " open(f'/proc/self/fd/{d}/{n}', 'wb').write(bytes(1 << 20))\n"
    "E",
    "closed-itself": "chmod 300 .; " + MANY,
    "listed-not-entered": "for d in 0 1 2 3 4 5 6 7 8 9; do mkdir $d; : > $d/f; chmod 400 $d; done; "
    "mkdir z; cd z; " + MANY,
    "odd-process-name": r"""name=$(printf 'a\rb: x kB'); ln -s /bin/sh "$name"; exec "./$name" -c """ + f"'{MANY}'",
    "odd-mapped-name": "python3 - <<'E'\n"
    "import mmap, os\n"
    "f = open('a\\rb', 'w+b'); f.truncate(4096); m = mmap.mmap(f.fileno(), 4096); f.close(); os.unlink('a\\rb')\n"
    "for n in range(2000):\n"
    " open(f'big-{n}', 'wb').write(bytes(1 << 20))\n"
    "E",
    "deleted-but-open": "python3 - <<'E'\n"
    "held = []\n"
    "import os\n"
    "for n in range(20000):\n"
    " f = open('loose', 'wb', buffering=0); os.unlink('loose'); held.append(f); f.write(bytes(4 << 20))\n"
    "E",
    "deleted-but-mapped": "python3 - <<'E'\n"
    "import mmap, os, time\n"
    "held = []\n"
    "for n in range(64):\n"
    " f = open('loose', 'w+b'); os.truncate('loose', 1 << 20); m = mmap.mmap(f.fileno(), 1 << 20)\n"
    " os.unlink('loose'); f.close(); m[:] = bytes(1 << 20); held.append(m)\n"
    "time.sleep(60)\n"
    "E",
    "deep-folders": "python3 - <<'E'\n"
    "import os, time\n"
    "for n in range(3000):\n"
    " os.mkdir('d'); os.chdir('d')\n"
    "open('x', 'wb').write(bytes(1 << 20)); time.sleep(60)\n"
    "E",
    "grandchild": "sh -c 'exec 9> loose; rm loose; for n in 1 2 3; do head -c 8M /dev/zero >&9; done; sleep 60' & wait",
}


def used(folder: Path) -> int:
    return usage.of_folder(str(folder), 2**60)


async def attacked(bench: Bench, script: str, limit: int = LIMIT, **wishes: object) -> tuple[Path, str, Exit]:
    folder = bench.directory(f"disk-{os.urandom(4).hex()}")
    watched = (Watched(folder, limit),)
    text, exit = await bench.shell(script, workdir=folder, watched=watched, seconds=60, **wishes)
    return folder, text, exit


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_job_that_writes_too_much_is_ended(bench: Bench, attack: str) -> None:
    folder, text, exit = await attacked(bench, ATTACKS[attack], largest_file=64 * MIB)
    assert exit.reason == "disk", text
    assert exit.code is None
    assert attack == "deep-folders" or used(folder) < BOUND
    subprocess.run(["rm", "-rf", "--", folder], check=True)  # deeper than Python can follow


async def test_one_large_file(bench: Bench) -> None:
    folder, _, exit = await attacked(bench, "head -c 1G /dev/zero > big; echo $?", 2**40, largest_file=LIMIT)
    assert (folder / "big").stat().st_size == LIMIT
    assert exit.reason == "exit"


async def test_a_sparse_file_counts_as_what_it_takes(bench: Bench) -> None:
    _, text, exit = await attacked(bench, "truncate -s 1G hole && echo made; sleep 0.5", largest_file=2**31)
    assert (text, exit.reason, exit.code) == ("made\n", "exit", 0)
    _, text, exit = await attacked(bench, "truncate -s 4G hole && echo made", largest_file=2**31)
    assert "made" not in text


async def test_a_neighbour_goes_on(bench: Bench) -> None:
    folder = bench.directory(f"neighbour-{os.urandom(4).hex()}")
    script = "head -c 8M /dev/zero > mine; sleep 2; cat mine | wc -c"
    neighbour = await bench.start("sh", "-c", script, workdir=folder, watched=(Watched(folder, LIMIT),))
    _, _, exit = await attacked(bench, ATTACKS["many-files"])
    assert exit.reason == "disk"
    assert b"".join([chunk async for chunk in neighbour.output()]) == b"8388608\n"
    assert (await neighbour.wait()).code == 0


async def test_a_folder_that_may_be_listed_and_not_entered_is_counted(bench: Bench) -> None:
    script = "mkdir d; head -c 1M /dev/zero > d/f; chmod 400 d; sleep 0.5; chmod 700 d; stat -c %s d/f"
    _, text, exit = await attacked(bench, script)
    assert (text, exit.reason) == ("1048576\n", "exit")


async def test_one_who_looks_that_was_killed_is_replaced(full: Bench) -> None:
    watched, others = full.directory(f"looked-{os.urandom(4).hex()}"), set(children(full))
    waiting = "while [ ! -e go ]; do sleep 0.05; done; head -c 64M /dev/zero > big; sleep 60"
    process = await full.start("sh", "-c", waiting, workdir=watched, watched=(Watched(watched, LIMIT),), seconds=60)
    for pid in set(children(full)) - others:
        if b"launcher.main" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, 9)
    (watched / "go").touch()
    assert (await process.wait()).reason == "disk"


async def test_a_full_volume_can_be_cleared_and_not_filled_further(bench: Bench) -> None:
    volume, bind = volume_of(bench, 24 * MIB)
    wishes = {"watched": (Watched(volume, LIMIT, shared=True),), "binds": (bind,), "seconds": 30}
    where = bench.sandbox.level.inside(str(volume), "/data")
    _, exit = await bench.shell(f"head -c 24M /dev/zero > {where}/more; sleep 20", **wishes)
    assert exit.reason == "disk"
    _, exit = await bench.shell(f"rm {where}/*; head -c 8M /dev/zero > {where}/less; sleep 0.5", **wishes)
    assert (exit.reason, exit.code) == ("exit", 0)
    _, exit = await bench.shell(f"head -c 32M /dev/zero > {where}/more; sleep 20", **wishes)
    assert exit.reason == "disk"


async def test_a_volume_far_beyond_its_size_is_closed(full: Bench) -> None:
    """Whoever comes again and again to write a little too much is not let in any more at some point."""
    volume, bind = volume_of(full, 128 * MIB)
    _, exit = await full.shell("sleep 20", watched=(Watched(volume, LIMIT, shared=True),), binds=(bind,))
    assert exit.reason == "disk"


def volume_of(bench: Bench, held: int) -> tuple[Path, Bind]:
    volume = bench.directory(f"volume-{os.urandom(4).hex()}")
    volume.chmod(0o777)
    (volume / "old").write_bytes(bytes(held))
    return volume, Bind(volume, "/data")


def children(bench: Bench) -> list[int]:
    listed = Path(f"/proc/{bench.sandbox.launcher_pid}/task/{bench.sandbox.launcher_pid}/children").read_text()
    return [int(pid) for pid in listed.split()]


async def test_one_whose_memory_takes_long_to_free_ends_too(bench: Bench) -> None:
    """Its main process is gone long before the rest of it, and its folder holds too much all the time."""
    hold = "import ctypes, time; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); held = bytearray(2000 << 20); "  # small pages
    script = f'python3 -c \'{hold} open("big", "wb").write(bytes(30 << 20)); time.sleep(60)\''
    _, text, exit = await attacked(bench, script, memory=3000 * MIB)
    assert exit.reason == "disk", text
