"""Volumes with a file system of their own are known also where it cannot be mounted, and when a manager died."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from contracts.volume_places import MIB, Identity, VolumePlacesContract, volume
from hansa.drivers.local import images
from hansa.drivers.local.disks import Disks, trouble
from hansa.drivers.local.launch import LaunchInvalid
from hansa.drivers.local.volume_images import VolumeImages, image_of
from hansa.drivers.runs.removal import remove
from hansa.storage import Folders

pytestmark = pytest.mark.skipif(bool(trouble()), reason=f"no images here: {trouble()}")
SMALL = 16 * MIB


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "volumes", remove)


@pytest.fixture
def places(folders: Folders) -> VolumeImages:
    return VolumeImages(folders)


@pytest.fixture
def without(folders: Folders) -> VolumeImages:
    """Of a manager that cannot use images."""
    return VolumeImages(folders, lambda: "no loop devices")


@pytest.fixture
def namespace() -> str:
    return "oscar-svc-alice-52"


@pytest.fixture
def identity(folders: Folders, namespace: str) -> Identity:
    async def of(name: str) -> str | None:
        """A mark inside, for the number of a file may be given again."""
        folder = folders.path_of(namespace, name)
        if (image := image_of(folder)) is None:
            return None
        return marked(image, str(image.stat().st_ctime_ns))

    return of


def marked(image: Path, word: str) -> str:
    """The first word that was ever written there."""
    attached = images.attach(image, lasting=True)
    try:
        mark = attached.folder / "mark"
        if not mark.exists():
            mark.write_text(word)
        return mark.read_text()
    finally:
        attached.close()


class TestImages(VolumePlacesContract):
    pass


async def test_one_that_cannot_be_mounted_is_removed_with_its_contents(
    places: VolumeImages, without: VolumeImages, folders: Folders, namespace: str
) -> None:
    """A new volume of the same name is empty, also when images can be used again."""
    one, folder = volume(namespace, size=SMALL), folders.path_of(namespace, "models")
    await places.make(one)
    assert (image := image_of(folder)) is not None
    await without.load([one])
    assert without.standing(namespace, "models").trouble
    assert "no loop devices" in without.standing(namespace, "models").reason
    await without.remove(namespace, "models")
    assert not image.exists()
    await without.make(one)
    assert without.standing(namespace, "models").phase == "Bound"
    await places.load([one])
    assert image_of(folder) is None  # made as a plain folder, and stays one
    assert list(folder.iterdir()) == []


DYING = """
import asyncio, pathlib, sys
from hansa.drivers.runs.removal import remove
from hansa.drivers.local.volume_images import VolumeImages
from hansa.storage import Folders, Volume

root, namespace, size = sys.argv[1:]
volume = Volume(namespace, "models", "alice", int(size), "", "retain", 0.0)
asyncio.run(VolumeImages(Folders(pathlib.Path(root), remove)).make(volume))
"""


async def test_one_that_was_being_made_when_the_manager_died_is_made_anew(
    places: VolumeImages, folders: Folders, namespace: str, tmp_path: Path
) -> None:
    one, folder = volume(namespace, size=SMALL), folders.path_of(namespace, "models")
    reached = tmp_path / "reached"
    slow = tmp_path / "bin" / "mkfs.ext4"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\ntouch {reached}\nexec sleep 600\n")
    slow.chmod(0o755)
    env = {**os.environ, "PATH": f"{slow.parent}:{os.environ['PATH']}"}
    argv = [sys.executable, "-c", DYING, str(folders.root), namespace, str(SMALL)]
    manager = await asyncio.create_subprocess_exec(*argv, env=env, start_new_session=True)
    try:
        async with asyncio.timeout(60):
            while not reached.exists():
                assert manager.returncode is None
                await asyncio.sleep(0.02)
    finally:
        os.killpg(manager.pid, signal.SIGKILL)
        await manager.wait()
    with pytest.raises(LaunchInvalid, match="not made yet"):
        image_of(folder)  # and no folder without a limit
    assert places.standing(namespace, "models").phase == "Pending"
    await places.load([one])
    assert image_of(folder) is not None
    assert places.standing(namespace, "models").phase == "Bound"


async def test_only_images_of_known_volumes_count_and_the_others_are_told(
    places: VolumeImages, folders: Folders, namespace: str
) -> None:
    """A database of before beside newer volumes: their room is gone, and nobody may be promised it."""
    known, unknown = volume(namespace, "known", SMALL), volume(namespace, "unknown", SMALL)
    for one in (known, unknown):
        await places.make(one)
    again = VolumeImages(folders)
    with capture_logs() as said:
        await again.load([known])
    [image] = folders.root.glob(".images/*/known.img")
    assert 0 < again.taken() == images.taken(image)
    [warning] = [one for one in said if one["log_level"] == "warning"]
    assert warning["files"] == [str(image.with_name("unknown.img"))]
    await again.remove(namespace, "known")
    assert again.taken() == 0
    assert os.path.exists(warning["files"][0])  # it may be all that is left of somebody's data


async def test_a_new_one_of_the_same_name_is_mounted_for_containers(
    folders: Folders, namespace: str, tmp_path: Path
) -> None:
    """The plain folder below has no limit."""
    disks = Disks(tmp_path / "work", hard=True, placed=True)
    places = VolumeImages(folders, let_go=disks.drop_volume)
    one, folder = volume(namespace, size=SMALL), folders.path_of(namespace, "models")
    try:
        for _ in range(2):
            await places.make(one)
            assert (image := image_of(folder)) is not None
            assert disks.volume(image, folder) is None
            assert os.path.ismount(folder)
            assert list(folder.iterdir()) == []
            (folder / "old").write_text("old")
            await places.remove(namespace, "models")
            assert not folder.exists()
    finally:
        disks.close()


async def test_mounts_that_killed_managers_left_go_with_the_volume(
    places: VolumeImages, folders: Folders, namespace: str, tmp_path: Path
) -> None:
    one, folder = volume(namespace, size=SMALL), folders.path_of(namespace, "models")
    await places.make(one)
    image = image_of(folder)
    assert image is not None
    for _ in range(2):
        if os.fork() == 0:
            Disks(tmp_path / "work", hard=True, placed=True).volume(image, folder)
            os._exit(0)
        os.wait()
    assert os.path.ismount(folder)
    await places.remove(namespace, "models")
    assert not folder.exists()
