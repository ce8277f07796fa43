"""The tours are true: every command of README's five minutes, the tutorial and the hub's guide runs, word for word."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from real.playground import Playground, playground

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "01-first-service"
CAPITALS = (EXAMPLE / "greeting.txt").read_text().upper()
_SH = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def section(page: str, title: str) -> str:
    """From one heading to the next of its rank."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {title!r}"
    return found[1]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Playground]:
    """A playground in a folder in which the words of the tour mean what they mean in a checkout."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    command = tmp_path / ".venv" / "bin" / "hansa"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hansa "$@"\n')
    command.chmod(0o755)
    with playground(tmp_path) as started:
        started.info()
        yield started


def run(commands: str, at: Playground) -> str:
    done = subprocess.run(
        ["sh", "-eu"],
        input=commands,
        cwd=at.folder,
        env=at.env,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def tour(page: str) -> list[str]:
    first, *blocks = _SH.findall(page)
    assert first == "make run\n"  # what the playground stands in for
    assert len(blocks) >= 2
    return blocks


def test_five_minutes(running: Playground) -> None:
    page = (ROOT / "README.md").read_text()
    said = [run(block, running) for block in tour(section(page, "Try it in five minutes"))]
    assert (running.folder / "result.txt").read_text() == CAPITALS
    assert said[0].endswith(CAPITALS)
    assert "greeting.txt has 2 lines and 15 words" in said[0]
    assert said[1].startswith(CAPITALS)
    assert "visby" in said[1]
    # What the playground itself proposes is part of the tour.
    named = [line.strip() for line in running.said.splitlines() if line.strip().startswith(".venv/bin/hansa ")]
    assert len(named) >= 3
    assert [command for command in named if f"\n{command}\n" not in page] == []
    the_hub_guide(running)  # on the same playground, which is dear to start


def the_hub_guide(running: Playground) -> None:
    page = (ROOT / "docs" / "guides" / "hub.md").read_text()
    watched, told, rules, moved = (run(block, running) for block in _SH.findall(page))
    assert watched.count("it reports, and nothing is missing") == 4  # three in the list, one shown
    assert "health" in watched
    assert "jobs.run_limit: 300 → 120" in told
    assert "policy door is in force no longer" in rules
    assert "riga has left" in moved
    assert moved.count(" ready ") == 3
    hub = running.info()["hub"]
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    env = {**os.environ, "HANSA_HUB": hub["url"], "HANSA_HUB_PASSWORD": hub["admin_password"]}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "federation.no-such-cluster hansa cluster ls" in done.stdout
    assert done.stdout.endswith("Inventory\n")


def test_tutorial(running: Playground) -> None:
    blocks = tour((ROOT / "docs" / "tutorial" / "first-service.md").read_text())
    said = "".join(run(block, running) for block in blocks)
    assert (running.folder / "result.txt").read_text() == CAPITALS
    assert "jobs only" in said
