"""`make` prepares the checkout's own environment, and no other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "scripts" / "setup.py"


@pytest.mark.parametrize("purpose", ["run", "test", "check"])
def test_a_linked_environment_is_left_alone(purpose: str, tmp_path: Path) -> None:
    checkout, shared = tmp_path / "checkout", tmp_path / "shared"
    (checkout / "scripts").mkdir(parents=True)
    shutil.copy(SETUP, checkout / "scripts")
    shared.mkdir()
    (shared / "somebody-needs-this").write_text("")
    (checkout / ".venv").symlink_to(shared)
    done = subprocess.run(
        [sys.executable, "scripts/setup.py", purpose],
        cwd=checkout,
        env=os.environ | {"HANSA_SETUP_PACKAGES": "no"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert [file.name for file in shared.iterdir()] == ["somebody-needs-this"]
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"setup: .venv is a link to {shared}, and setup would change what lies there",
        "setup: remove the link, and call the same command again: rm .venv",
    ]
    assert (checkout / ".venv").is_symlink()
    assert not (checkout / ".cache").exists()
