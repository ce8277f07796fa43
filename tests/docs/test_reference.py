"""The generated pages say what the code says, and no setting or error is left without a word."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", ["settings_reference.py", "errors_reference.py"])
def test_the_page_is_up_to_date(script: str) -> None:
    """Stale, or something without a sentence: the script says which, and what to call."""
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
