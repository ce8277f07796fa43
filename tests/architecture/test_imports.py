"""Do imports point down the list of rooms? The contracts stand in `.importlinter`; here they are kept."""

import configparser
import subprocess
import sys
from pathlib import Path

from architecture import tree

CONTRACTS = tree.ROOT / ".importlinter"


def lines_of(contract: str, option: str) -> set[str]:
    contracts = configparser.ConfigParser()
    contracts.read(CONTRACTS, encoding="utf-8")
    return set(contracts[f"importlinter:contract:{contract}"][option].split())


def test_every_contract_is_kept(tmp_path: Path) -> None:
    call = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    told = subprocess.run(
        [sys.executable, "-c", call, "--no-logo", "--cache-dir", str(tmp_path)],
        cwd=tree.ROOT,
        env={"PYTHONPATH": str(tree.PACKAGE.parent), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_every_area_is_kept_from_io() -> None:
    kept = lines_of("areas-do-no-io", "source_modules")
    forgotten = {f"hansa.{area}" for area in tree.AREAS if (tree.PACKAGE / area).is_dir()} - kept
    assert not forgotten, f"add to source_modules of areas-do-no-io in .importlinter: {sorted(forgotten)}"


def test_every_room_has_a_place_in_the_list() -> None:
    placed = {word.strip("()") for word in lines_of("layers", "layers")} - {"|"}
    rooms = {module.room for module in tree.product_modules()} - {"__init__", "__main__"}
    assert not rooms - placed, "a new room takes its place in `layers` of .importlinter, and in ADR 0001"
