"""Does the guard end its command with its parent, insist when it must, and keep the log small?"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hansa.drivers.s3 import guard

LIMIT = 64 * 1024
PATIENCE = 10.0


@contextmanager
def guarded(folder: Path, script: str, grace: float = 5.0) -> Iterator["subprocess.Popen[bytes]"]:
    kept = os.open(folder / "kept", os.O_RDWR | os.O_CREAT)
    command = [sys.executable, "-I", "-S", guard.__file__, str(folder / "log"), str(LIMIT), str(grace), str(kept), ""]
    process = subprocess.Popen(
        [*command, "/bin/sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(kept,)
    )
    os.close(kept)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.stdin.close()
        process.stdout.close()
        process.kill()
        process.wait(PATIENCE)


def child_of(process: "subprocess.Popen[bytes]") -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def await_words(log: Path, words: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not log.exists() or words not in log.read_text():
        assert time.monotonic() < deadline, f"{words!r} was never said"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        stat = Path(f"/proc/{pid}/stat")
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_exits_as_its_command_does_and_keeps_its_words(tmp_path: Path) -> None:
    with guarded(tmp_path, "echo out; echo err >&2; exit 7") as process:
        assert process.wait(PATIENCE) == 7
    assert sorted((tmp_path / "log").read_text().split()) == ["err", "out"]


def test_ends_its_command_when_the_parent_lets_go(tmp_path: Path) -> None:
    with guarded(tmp_path, "trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.05; done") as process:
        pid = child_of(process)
        await_words(tmp_path / "log", "up")
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 3
        assert gone(pid)
    assert "asked" in (tmp_path / "log").read_text()


def test_insists_when_the_command_does_not_listen(tmp_path: Path) -> None:
    with guarded(tmp_path, "trap '' TERM; echo up; while :; do sleep 0.05; done", grace=0.3) as process:
        pid = child_of(process)
        await_words(tmp_path / "log", "up")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 128 + signal.SIGKILL
        assert gone(pid)


def test_a_killed_guard_takes_its_command_along(tmp_path: Path) -> None:
    with guarded(tmp_path, "exec sleep 600") as process:
        pid = child_of(process)
        process.kill()
        assert gone(pid)


def test_what_comes_at_once_does_not_pass_the_limit_either(tmp_path: Path) -> None:
    log = guard.BoundedLog(str(tmp_path / "log"), LIMIT)
    for size in (10, 3 * LIMIT, LIMIT // 2 + 1):
        log.write(b"x" * size)
        parts = [part for part in (tmp_path / "log", tmp_path / "log.1") if part.exists()]
        assert sum(part.stat().st_size for part in parts) <= LIMIT
    assert (tmp_path / "log").stat().st_size


def test_the_log_stays_small(tmp_path: Path) -> None:
    with guarded(tmp_path, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done") as process:
        assert process.wait(PATIENCE) == 0
    parts = [tmp_path / "log", tmp_path / "log.1"]
    assert sum(part.stat().st_size for part in parts) <= LIMIT
    assert parts[0].read_text().endswith("line 19999\n")
