"""Volumes as folders of this machine, below one root as `<namespace>/<name>`. The `VolumePlaces` port.

Removing moves a folder aside first, so that neither a reader nor a new volume of the same name ever sees half-removed
contents. A plain file system does not stop a script from writing more than the size of its volume.
"""

import asyncio
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from hansa.kernel import names
from hansa.storage.places import Place, Standing
from hansa.storage.records import Volume

_ASIDE = ".removed"  # no namespace begins with a dot
_MODE = 0o2770  # whoever has the group writes, and what they make belongs to the group


class Folders:
    def __init__(self, root: Path, gid: int | None = None) -> None:
        self._root = root
        self._gid = os.getgid() if gid is None else gid

    async def load(self, volumes: Sequence[Volume]) -> None:
        for volume in volumes:
            await asyncio.to_thread(self._make_folder, self.path_of(volume.namespace, volume.name))
        await asyncio.to_thread(shutil.rmtree, self._root / _ASIDE, True)  # what an earlier removal left

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
        if path.stat().st_gid != self._gid:
            os.chown(path, -1, self._gid)
        path.chmod(_MODE)  # after the change of group, which takes the set-group bit away

    def _set_aside(self, path: Path) -> None:
        if not path.exists():
            return
        aside = self._root / _ASIDE / uuid.uuid4().hex
        aside.parent.mkdir(parents=True, exist_ok=True)
        path.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)
