"""Volumes with a hard limit: each is a file system of its own, in a file beside the folders. The `VolumePlaces` port.

A volume that was made as a plain folder stays one; the launcher watches how much it holds.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

import structlog

from hansa import storage
from hansa.drivers.local import images
from hansa.drivers.local.launch import LaunchInvalid
from hansa.drivers.local.launcher import linux

_log = structlog.get_logger("hansa.local")
_IMAGES = ".images"  # no namespace begins with a dot
_NOTES = ".with-image"  # beside them, so that a volume that lost its image is not taken for an empty folder


def image_of(folder: Path) -> Path | None:
    """The image of the volume that runs see at this folder; None if the folder itself is the volume. Raises
    `LaunchInvalid` if there was one."""
    image = _place(folder)
    if image.exists():
        return image
    if _note(folder).exists():
        raise LaunchInvalid(f"the volume {folder.name} has lost its contents", hint=_lost(image))
    return None


def has_image(folder: Path) -> bool:
    """Or had one."""
    return _place(folder).exists() or _note(folder).exists()


def _lost(image: Path) -> str:
    return f"restore the file {_IMAGES}/{image.parent.name}/{image.name} of the volumes, or make the volume anew"


def taken(volumes: Path) -> int:
    """Bytes that the images of all volumes below this folder take by now."""
    return sum(map(images.taken, (volumes / _IMAGES).glob("*/*.img")))


def _place(folder: Path) -> Path:
    return folder.parent.parent / _IMAGES / folder.parent.name / f"{folder.name}.img"


def _note(folder: Path) -> Path:
    return folder.parent.parent / _NOTES / folder.parent.name / folder.name


class VolumeImages:
    def __init__(self, folders: storage.Folders) -> None:
        self._folders = folders

    async def load(self, volumes: Sequence[storage.Volume]) -> None:
        await self._folders.load(volumes)
        await asyncio.to_thread(self._note_all, volumes)

    async def make(self, volume: storage.Volume) -> None:
        await self.remove(volume.namespace, volume.name)
        await self._folders.make(volume)
        await asyncio.to_thread(self._make_image, volume)

    async def remove(self, namespace: str, name: str) -> None:
        folder = self._folders.path_of(namespace, name)
        await asyncio.to_thread(self._remove_image, folder)
        await self._folders.remove(namespace, name)

    def place(self, namespace: str, name: str) -> storage.Place:
        return self._folders.place(namespace, name)

    def standing(self, namespace: str, name: str) -> storage.Standing:
        folder = self._folders.path_of(namespace, name)
        image = _place(folder)
        if _note(folder).exists() and not image.exists():
            return storage.Standing("Lost", f"it has lost its contents: {_lost(image)}", trouble=True)
        return self._folders.standing(namespace, name)

    # What follows runs in threads.

    def _make_image(self, volume: storage.Volume) -> None:
        folder = self._folders.path_of(volume.namespace, volume.name)
        image = _place(folder)
        for closed in (image.parent.parent, image.parent):
            closed.mkdir(exist_ok=True, mode=0o700)
        fresh = image.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        images.make(fresh, max(volume.size, images.SMALLEST), journal=True)
        attached = images.attach(fresh, fresh=True, lasting=True)
        try:
            with contextlib.suppress(OSError):
                (attached.folder / "lost+found").rmdir()
            self._folders.open_to_group(attached.folder)
        finally:
            attached.close()
        fresh.rename(image)
        self._write_note(folder)

    def _note_all(self, volumes: Sequence[storage.Volume]) -> None:
        for volume in volumes:
            folder = self._folders.path_of(volume.namespace, volume.name)
            if _place(folder).exists():
                self._settle(folder)

    def _settle(self, folder: Path) -> None:
        """It is open to the group that volumes have now. Which one it had is noted beside it, for looking into all
        images at every start would take long."""
        note, done = _note(folder), False
        if note.exists() and note.read_text() == str(self._folders.gid):
            return
        try:
            attached = images.attach(_place(folder), lasting=True)
            try:
                self._folders.open_to_group(attached.folder)
            finally:
                attached.close()
            done = True
        except OSError as error:  # whoever uses it is told what is wrong with it
            _log.warning("a volume could not be opened to jobs", volume=folder.name, error=error.strerror or str(error))
        self._write_note(folder, known=done)

    def _write_note(self, folder: Path, *, known: bool = True) -> None:
        note = _note(folder)
        for closed in (note.parent.parent, note.parent):
            closed.mkdir(exist_ok=True, mode=0o700)
        note.write_text(str(self._folders.gid) if known else "")

    def _remove_image(self, folder: Path) -> None:
        linux.take_place(str(folder))  # where containers see it
        _note(folder).unlink(missing_ok=True)
        _place(folder).unlink(missing_ok=True)
