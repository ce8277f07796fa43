"""Volumes as folders of this machine, below one root as `<namespace>/<name>`. The `VolumePlaces` port.

Removing moves a folder aside first, so that neither a reader nor a new volume of the same name ever sees half-removed
contents. Trouble with what was set aside is logged, and stops neither the removal nor a start. A plain folder does not
stop a script from writing more than the size of its volume; engines watch it.
"""

import asyncio
import os
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from hansa.kernel import names
from hansa.storage.places import Place, Standing
from hansa.storage.records import Volume

_log = structlog.get_logger("hansa.storage")
_ASIDE = ".removed"  # no namespace begins with a dot
_PASSAGE = 0o711  # jobs may walk through, and see no names of others' volumes
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MODE = 0o2770  # whoever has the group writes, and what they make belongs to the group


class Folders:
    def __init__(self, root: Path, remove: Callable[[Path], None], gid: int | None = None) -> None:
        """`remove` takes away a folder in which scripts left anything, or raises OSError."""
        self._root = root
        self._remove = remove
        self._gid = os.getgid() if gid is None else gid

    async def load(self, volumes: Sequence[Volume]) -> None:
        for volume in volumes:
            await asyncio.to_thread(self._make_folder, self.path_of(volume.namespace, volume.name))
        await asyncio.to_thread(self._clear, self._root / _ASIDE)  # what an earlier removal left

    async def make(self, volume: Volume) -> None:
        path = self.path_of(volume.namespace, volume.name)
        await asyncio.to_thread(self._set_aside, path)  # a removal may have died before it got here
        await asyncio.to_thread(self._make_folder, path)

    async def remove(self, namespace: str, name: str) -> None:
        await asyncio.to_thread(self._set_aside, self.path_of(namespace, name))

    def place(self, namespace: str, name: str) -> Place:
        return Place(str(self.path_of(namespace, name)), self._gid)

    def standing(self, namespace: str, name: str) -> Standing:
        return Standing()

    def path_of(self, namespace: str, name: str) -> Path:
        return self._root / names.volume(namespace) / names.volume(name)

    # What follows runs in threads.

    def _make_folder(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(_PASSAGE)
        self.open_to_group(path)

    @property
    def root(self) -> Path:
        return self._root

    @property
    def gid(self) -> int:
        return self._gid

    def open_to_group(self, path: Path) -> None:
        """Who has the volumes' group may write there, also to what was made when they had another one: the operator may
        have given other ids to jobs. The folder itself comes last, so that a change that is cut short is made again."""
        before = path.stat().st_gid
        if before != self._gid:
            _regroup(path, before, self._gid)
            os.chown(path, -1, self._gid)
        path.chmod(_MODE)  # after the change of group, which takes the set-group bit away

    def _set_aside(self, path: Path) -> None:
        if not path.exists():
            return
        aside = self._root / _ASIDE / uuid.uuid4().hex
        aside.parent.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)  # a script may have closed it, and a closed folder does not move
        path.rename(aside)
        self._clear(aside)

    def _clear(self, aside: Path) -> None:
        try:
            self._remove(aside)
        except OSError as error:
            _log.warning("a removed volume is still on the disk; the next start tries again", error=str(error))


def _regroup(folder: Path, before: int, after: int) -> None:
    """All below the folder that belongs to the group of before. Follows no links. With one handle at a time, down by
    name and up again: users' folders may be deeper than a path is long. Nobody uses a volume before the start is over.
    """
    here = os.open(folder, _FOLDER)
    try:
        left = [_given(here, before, after)]  # of each folder on the way here, those in it that are still to be seen
        while left:
            down = left[-1].pop() if left[-1] else ""
            following = os.open(down or "..", _FOLDER | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = following
            if down:
                left.append(_given(here, before, after))
            else:
                left.pop()
    finally:
        os.close(here)


def _given(folder: int, before: int, after: int) -> list[str]:
    """What is in this folder is the new group's; returns the folders in it."""
    inner = []
    with os.scandir(folder) as found:
        for one in found:
            if one.stat(follow_symlinks=False).st_gid == before:
                os.chown(one.name, -1, after, dir_fd=folder, follow_symlinks=False)
            if one.is_dir(follow_symlinks=False):
                inner.append(one.name)
    return inner
