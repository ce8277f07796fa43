"""The reference page says what the commands are, and every command can answer a machine."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from hansa.entrypoints.cli.app import app

ROOT = Path(__file__).parents[3]


def test_the_page_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "cli_reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None or (path and command.invoke_without_command):
        yield path, command
    for name, child in (inner or {}).items():
        yield from commands(child, f"{path} {name}".strip())


def test_every_command_has_help_and_json() -> None:
    found = dict(commands(get_command(app), ""))
    assert len(found) > 30
    assert [path for path, command in found.items() if not command.help] == []
    silent = [path for path, command in found.items() if not any("--json" in param.opts for param in command.params)]
    assert silent == ["server", "hub follow"]  # they run until they are stopped and have no answer
