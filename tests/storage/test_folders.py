"""Folders are places of volumes."""

from pathlib import Path

import pytest

from contracts.volume_places import Identity, VolumePlacesContract
from hansa.storage import Folders


@pytest.fixture
def places(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "volumes")


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
