"""The tours are true: every command of README's five minutes and of the tutorial runs, word for word."""

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


def test_tutorial(running: Playground) -> None:
    blocks = tour((ROOT / "docs" / "tutorial" / "first-service.md").read_text())
    said = "".join(run(block, running) for block in blocks)
    assert (running.folder / "result.txt").read_text() == CAPITALS
    assert "jobs only" in said
