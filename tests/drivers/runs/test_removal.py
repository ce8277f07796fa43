"""Does a folder go, whatever a script left in it? Closed ones, which stop nobody who is root, are in
`journeys/attacks/test_disk.py`."""

from pathlib import Path

from drivers.local.nesting import nest
from hansa.drivers.runs.removal import remove


def test_folders_deeper_than_python_goes(tmp_path: Path) -> None:
    nest(tmp_path)
    remove(tmp_path)
    assert not tmp_path.exists()


def test_what_is_not_there_is_removed_already(tmp_path: Path) -> None:
    remove(tmp_path / "never-made")
