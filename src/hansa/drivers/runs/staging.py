"""How do inputs come to a script and its outputs to where they belong?

`Staging` serves one run: `bring` before the script, `carry` after it. A store that is away for a while is
asked again, for a bounded time; every step may be repeated, so a run that was cut short can carry once more.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

from hansa import services
from hansa.drivers.runs import environment
from hansa.drivers.runs.left_files import LeftFile, left_files
from hansa.drivers.runs.stores import OrderStores
from hansa.kernel import errors, quantities
from hansa.services import events

T = TypeVar("T")
Say = Callable[[str, str], None]
Given = events.ObjectInput | events.BytesInput

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 15.0


class Folders(Protocol):
    """Where a run's files are for whoever stages them."""

    @property
    def input(self) -> Path: ...
    @property
    def output(self) -> Path: ...
    @property
    def mount(self) -> Path: ...
    @property
    def owner(self) -> int:
        """The user the script runs as."""
        ...

    @property
    def mounted(self) -> dict[str, list[int]]:
        """Size and time of every file of the mounted folder as it came."""
        ...

    def note_mounted(self) -> None: ...


class Staging:
    """The inputs and outputs of one run."""

    def __init__(
        self, order: services.RunOrder, folders: Folders, stores: OrderStores, say: Say, patience: float
    ) -> None:
        self.given = events.interpret(order.event)
        self._service = order.service
        self._folders = folders
        self._stores = stores
        self._say = say
        self._patience = patience

    async def bring(self) -> None:
        """The input file and the mounted folder are in place when it returns."""
        target = self._folders.input / environment.input_name(self.given)
        if isinstance(self.given, events.BytesInput):
            await asyncio.to_thread(target.write_bytes, self.given.data)
        elif not self._service.file_stage_in:
            await self._download("minio", self.given.provider, self.given.bucket, self.given.key, target)
            self._say("INFO", f"input {self.given.bucket}/{self.given.key} is in place")
        if self._service.mount.path:
            await self._fill_mount()

    async def carry(self) -> int:
        """Every output is stored when it returns; how many there were."""
        count = 0
        for file in left_files(self._folders.output, self._folders.owner):
            name = file.relative.rpartition("/")[2]
            for output in self._service.output:
                if matches(output, name):
                    await self._upload(output, file)
                    count += 1
        if self._service.mount.path:
            count += await self._carry_mount()
        return count

    async def _upload(self, output: services.StorageIO, file: LeftFile) -> None:
        kind, ident = services.provider_of(output)
        bucket, folder = services.split_path(output.path)
        if kind == "minio" and isinstance(self.given, events.ObjectInput):
            # every user of an isolated service has a bucket of their own, and results stay in it
            bucket = self.given.bucket if self.given.bucket in self._service.bucket_list else bucket
        await self._store(kind, ident, bucket, _join(folder, file.relative), file)

    async def _store(self, kind: str, ident: str, bucket: str, key: str, file: LeftFile) -> None:
        target = self._stores.target(kind, ident)
        await self._patiently(f"upload {bucket}/{key}", lambda: target.upload(bucket, key, file.path))
        self._say("INFO", f"output {bucket}/{key} is stored ({quantities.show_size(file.size)} bytes)")

    async def _download(self, kind: str, ident: str, bucket: str, key: str, target: Path) -> None:
        store = self._stores.store(kind, ident)
        await self._patiently(f"download {bucket}/{key}", lambda: store.download(bucket, key, target))
        await asyncio.to_thread(target.chmod, 0o644)

    # A mounted folder is a copy: all of it comes before the script, what changed goes back after it.

    async def _fill_mount(self) -> None:
        kind, ident = services.provider_of(self._service.mount)
        bucket, folder = services.split_path(self._service.mount.path)
        store = self._stores.store(kind, ident)
        prefix, page = _join(folder, ""), ""
        while True:
            asked = functools.partial(store.list, bucket, prefix, page)
            listed = await self._patiently(f"list {bucket}/{prefix}", asked)
            for each in listed.objects:
                steps = each.key.removeprefix(prefix).split("/")
                if not set(steps) & {"", ".", ".."}:  # markers of folders, and names no file can have
                    target = self._folders.mount.joinpath(*steps)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    await self._download(kind, ident, bucket, each.key, target)
            page = listed.next_page
            if not page:
                break
        await asyncio.to_thread(_open_up, self._folders.mount)
        await asyncio.to_thread(self._folders.note_mounted)

    async def _carry_mount(self) -> int:
        kind, ident = services.provider_of(self._service.mount)
        bucket, folder = services.split_path(self._service.mount.path)
        count, before = 0, self._folders.mounted
        for file in left_files(self._folders.mount, self._folders.owner):
            if before.get(file.relative) != [file.size, file.modified]:
                await self._store(kind, ident, bucket, _join(folder, file.relative), file)
                count += 1
        return count

    async def _patiently(self, what: str, work: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + self._patience, _FIRST_PAUSE
        while True:
            try:
                return await work()
            except errors.Temporary as error:
                if loop.time() + pause > end:
                    raise
                self._say("WARNING", f"{what}: {error}; trying again in {pause:g} s")
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def matches(output: services.StorageIO, name: str) -> bool:
    """Does a file of this name go to this output? Empty lists let everything through."""
    begins = not output.prefix or name.startswith(tuple(output.prefix))
    ends = not output.suffix or name.endswith(tuple(output.suffix))
    return begins and ends


def _join(folder: str, name: str) -> str:
    return f"{folder.strip('/')}/{name}" if folder.strip("/") else name


def _open_up(folder: Path) -> None:
    """The script may change what is mounted; only the run itself can come here."""
    for path in folder.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
