"""Folders are places of volumes."""

from pathlib import Path

import pytest

from contracts.volume_places import Identity, VolumePlacesContract, volume
from drivers.local.nesting import nest
from hansa.drivers.runs.removal import remove
from hansa.storage import Folders


@pytest.fixture
def places(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "volumes", remove)


@pytest.fixture
def namespace() -> str:
    return "oscar-svc-alice-52"


@pytest.fixture
def identity(places: Folders, namespace: str) -> Identity:
    async def of(name: str) -> str | None:
        """A mark inside, for the number of a file may be given again."""
        path = places.path_of(namespace, name)
        if not path.exists():
            return None
        mark = path / "mark"
        if not mark.exists():
            mark.write_bytes(str(mark.parent.stat().st_ctime_ns).encode())
        return mark.read_text()

    return of


class TestFolders(VolumePlacesContract):
    pass


async def test_a_volume_goes_however_deep_its_folders_are(places: Folders, namespace: str, tmp_path: Path) -> None:
    await places.make(volume(namespace))
    nest(places.path_of(namespace, "models"))
    await places.remove(namespace, "models")
    assert list((tmp_path / "volumes" / ".removed").iterdir()) == []


async def test_a_start_clears_what_a_removal_left_however_deep(places: Folders, tmp_path: Path) -> None:
    left = tmp_path / "volumes" / ".removed" / "left"
    left.mkdir(parents=True)
    nest(left)
    await places.load([])
    assert not left.exists()


async def test_what_cannot_be_removed_stops_nobody(namespace: str, tmp_path: Path) -> None:
    def refused(path: Path) -> None:
        raise OSError(f"{path} is busy")

    places = Folders(tmp_path / "volumes", refused)
    await places.make(volume(namespace))
    await places.remove(namespace, "models")
    assert not places.path_of(namespace, "models").exists()
    await places.load([volume(namespace)])
    assert places.path_of(namespace, "models").is_dir()
