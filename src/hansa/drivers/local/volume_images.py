"""Volumes with a hard limit: each is a file system of its own, in a file beside the folders. The `VolumePlaces` port.

A volume that was made as a plain folder stays one; the launcher watches how much it holds. Where images cannot be used
new volumes are plain folders, and those with an image wait for a manager that can mount it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from hansa import storage
from hansa.drivers.local import images
from hansa.drivers.local.launch import LaunchInvalid
from hansa.drivers.local.launcher import linux

_log = structlog.get_logger("hansa.local")
_IMAGES = ".images"  # no namespace begins with a dot
_NOTES = ".with-image"  # beside them, so that a volume that lost its image is not taken for an empty folder
_UNFINISHED = "start the manager again, or make the volume anew"
MOUNT_AGAIN = "the manager needs root, loop devices and a sandbox of the level full again (`hansa doctor` tells more)"
_SHOWN = 10  # of many


def image_of(folder: Path) -> Path | None:
    """The image of the volume that runs see at this folder; None if the folder itself is the volume. Raises
    `LaunchInvalid` if there was one, or will be."""
    image = _place(folder)
    if _begun(folder).exists():
        raise LaunchInvalid(f"the volume {folder.name} is not made yet", hint=_UNFINISHED)
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


def _place(folder: Path) -> Path:
    return folder.parent.parent / _IMAGES / folder.parent.name / f"{folder.name}.img"


def _note(folder: Path) -> Path:
    return folder.parent.parent / _NOTES / folder.parent.name / folder.name


def _begun(folder: Path) -> Path:
    """There while a volume is being made: whatever else is there by then, its user put nothing in."""
    return _place(folder).with_suffix(".begun")


def _fresh(folder: Path) -> Path:
    return _place(folder).with_suffix(".new")


def unmountable(why: str) -> str:
    """What follows the name of such a volume."""
    return f"has a file system of its own, which cannot be mounted here: {why}"


class VolumeImages:
    def __init__(
        self,
        folders: storage.Folders,
        no_images: Callable[[], str] = lambda: "",
        let_go: Callable[[Path], None] = lambda folder: None,
    ) -> None:
        """`no_images` says why images cannot be used, or nothing. Those that are there are known all the same. `let_go`
        closes what runs used of a volume that is gone: else a new one of its name would never be mounted."""
        self._folders = folders
        self._no_images = no_images
        self._let_go = let_go
        self._known: set[Path] = set()

    async def load(self, volumes: Sequence[storage.Volume]) -> None:
        self._known = {self._folders.path_of(one.namespace, one.name) for one in volumes}
        for volume in volumes:
            if await asyncio.to_thread(self._is_unmade, volume):
                await self._make_after_all(volume)
        await self._folders.load(volumes)
        await asyncio.to_thread(self._note_all)
        await asyncio.to_thread(self._tell_of_others)

    async def make(self, volume: storage.Volume) -> None:
        folder = self._folders.path_of(volume.namespace, volume.name)
        await asyncio.to_thread(self._begin, folder)
        await asyncio.to_thread(self._remove_image, folder)
        await self._folders.make(volume)
        if not self._no_images():
            await asyncio.to_thread(self._make_image, folder, volume.size)
        self._known.add(folder)
        await asyncio.to_thread(_begun(folder).unlink)

    async def remove(self, namespace: str, name: str) -> None:
        folder = self._folders.path_of(namespace, name)
        await asyncio.to_thread(self._remove_image, folder)
        self._known.discard(folder)
        await self._folders.remove(namespace, name)
        await asyncio.to_thread(_begun(folder).unlink, missing_ok=True)

    def taken(self) -> int:
        """Bytes that the images of all volumes we know take by now. What else is there is of no volume, and nobody can
        have its room."""
        return sum(images.taken(_place(folder)) for folder in self._known)

    def place(self, namespace: str, name: str) -> storage.Place:
        return self._folders.place(namespace, name)

    def standing(self, namespace: str, name: str) -> storage.Standing:
        folder = self._folders.path_of(namespace, name)
        image = _place(folder)
        if _begun(folder).exists():
            return storage.Standing("Pending", f"it is being made; if that does not end: {_UNFINISHED}")
        if _note(folder).exists() and not image.exists():
            return storage.Standing("Lost", f"it has lost its contents: {_lost(image)}", trouble=True)
        if image.exists() and (why := self._no_images()):
            return storage.Standing("Pending", f"it {unmountable(why)}; {MOUNT_AGAIN}", trouble=True)
        return self._folders.standing(namespace, name)

    async def _make_after_all(self, volume: storage.Volume) -> None:
        try:
            await self.make(volume)
        except OSError as error:  # it stands as unmade, and the others are there
            _log.warning("a volume could not be made", volume=volume.name, error=error.strerror or str(error))

    # What follows runs in threads.

    def _is_unmade(self, volume: storage.Volume) -> bool:
        """A manager died while it made this volume, or before it began."""
        folder = self._folders.path_of(volume.namespace, volume.name)
        return _begun(folder).exists() or not (folder.exists() or has_image(folder))

    def _begin(self, folder: Path) -> None:
        begun = _begun(folder)
        for closed in (begun.parent.parent, begun.parent):
            closed.mkdir(parents=True, exist_ok=True, mode=0o700)
        begun.touch()

    def _make_image(self, folder: Path, size: int) -> None:
        fresh = _fresh(folder)
        images.make(fresh, max(size, images.SMALLEST), journal=True)
        attached = images.attach(fresh, fresh=True, lasting=True)
        try:
            with contextlib.suppress(OSError):
                (attached.folder / "lost+found").rmdir()
            self._folders.open_to_group(attached.folder)
        finally:
            attached.close()
        fresh.rename(_place(folder))
        self._write_note(folder)

    def _note_all(self) -> None:
        for folder in self._known:
            if _place(folder).exists():
                self._settle(folder)

    def _tell_of_others(self) -> None:
        known = set(map(_place, self._known))
        others = [image for image in sorted(self._folders.root.glob(f"{_IMAGES}/*/*.img")) if image not in known]
        if others:
            _log.warning(
                "files of volumes that are not known take room: bring back the database they belong to, or remove them",
                count=len(others),
                bytes=sum(map(images.taken, others)),
                files=[str(image) for image in others[:_SHOWN]],
            )

    def _settle(self, folder: Path) -> None:
        """It is open to the group that volumes have now. Which one it had is noted beside it, for looking into all
        images at every start would take long."""
        note, done = _note(folder), False
        if note.exists() and (self._no_images() or note.read_text() == str(self._folders.gid)):
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
        for left in (_note(folder), _place(folder), _fresh(folder)):
            left.unlink(missing_ok=True)
        self._let_go(folder)  # no run that begins just now can mount it again
        while linux.take_place(str(folder)):
            pass  # where containers saw it, of managers that were killed
