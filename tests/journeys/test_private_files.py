"""What does another user of the machine see of a manager's data? Nothing, at any level, and jobs run all the same."""

import os
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeys.waiting import run_job
from real import parts
from real.manager import ORDINARY_USER, Manager, StartManager, running_manager

STRANGER = 3_999_998  # an ordinary user nobody else is
_READABLE = "import os, sys; [print(p) for p in sys.stdin.read().split('\\0') if p and os.access(p, os.R_OK)]"


@pytest.fixture(autouse=True)
def _as_root() -> None:
    if os.geteuid() != 0:
        parts.give_up("root", "only root can be another user for a moment")


def seen_by(stranger: int, data: Path) -> list[str]:
    """Every path below the folder that a user who knows all names could read or list."""
    every = [str(data)]
    for folder, folders, files in os.walk(data):  # what vanishes meanwhile is not seen either
        every += [f"{folder}/{name}" for name in (*folders, *files) if not os.path.islink(f"{folder}/{name}")]
    asked = subprocess.run(
        ["/usr/bin/python3", "-c", _READABLE],
        input="\0".join(every),
        user=stranger,
        group=stranger,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return asked.stdout.split()


def make(client: httpx.Client, **more: Any) -> None:
    definition = {
        "name": "tool",
        "image": "any",
        "cpu": "0.1",
        "memory": "64Mi",
        "script": 'cat "$INPUT_FILE_PATH" && if [ -e /data ]; then echo kept > /data/kept; fi',
        **more,
    }
    assert (made := client.post("/system/services", json=definition)).status_code == 201, made.text


def runs(own: Manager) -> None:
    """As a job and as a call: their folders are made in different places."""
    caller = own.bearer(own.admin.get("/system/services/tool").json()["token"])
    assert "hello" in run_job(caller, "tool", b"aGVsbG8=", owner=own.admin)
    assert (called := caller.post("/run/tool", content=b"aGVsbG8=")).status_code == 200, called.text


def test_a_stranger_sees_nothing(start_manager: StartManager) -> None:
    parts.require("bubblewrap")
    own = start_manager()
    make(own.admin, volume={"name": "kept", "size": "200Mi", "mount_path": "/data"})
    runs(own)
    assert own.data.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in own.data.glob("hansa.db*")} == {0o600}
    assert seen_by(STRANGER, own.data) == []


def test_a_folder_that_was_open_is_closed(start_manager: StartManager) -> None:
    parts.require("bubblewrap")
    own = start_manager()
    make(own.admin)
    runs(own)
    own.stop()
    for path in (own.data, own.data / "logs", own.data / "objects", own.data / "hansa.db"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert seen_by(STRANGER, own.data) != []
    own.start()
    runs(own)
    assert seen_by(STRANGER, own.data) == []
    assert "the data folder was open to others and is private now" in own.log


def test_an_ordinary_users_data_is_private_too() -> None:
    parts.require("bubblewrap")
    with running_manager(user=ORDINARY_USER) as own:
        make(own.admin)
        runs(own)
        assert own.data.stat().st_uid == ORDINARY_USER
        assert own.data.stat().st_mode & 0o777 == 0o700
        assert seen_by(STRANGER, own.data) == []


@pytest.fixture
def _no_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with everything but that: jobs then walk real paths."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in ("/usr/local/bin", "/usr/sbin", "/usr/bin"):
        for program in Path(folder).iterdir():
            if program.name != "bwrap" and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    monkeypatch.setenv("PATH", str(programs))


@pytest.mark.usefixtures("_no_bubblewrap")
def test_where_jobs_walk_real_paths_others_pass_but_do_not_look(start_manager: StartManager) -> None:
    own = start_manager()
    make(own.admin, volume={"name": "kept", "size": "200Mi", "mount_path": "/data"})
    for _ in range(2):  # after a restart too
        runs(own)
        assert own.data.stat().st_mode & 0o777 == 0o711
        assert {path.name for path in own.data.iterdir() if path.stat().st_mode & 0o077} == {"work", "volumes"}
        assert seen_by(STRANGER, own.data / "work") == []
        assert seen_by(STRANGER, own.data) == []
        own.restart()
