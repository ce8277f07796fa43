"""How do inputs come to a script and its outputs to where they belong?

`bring` before the script, `carry` after it. A store that is away for a while is asked again, for a bounded time; every
step may be repeated, so a run that was cut short can carry once more.
"""

import contextlib
import functools
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from . import beneath, unfinished
from .beneath import LeftFile
from .errors import ODD_LETTERS, NotYet, Refused, TooLarge, Trouble, Unheard
from .plan import Plan
from .s3 import S3
from .unfinished import Unfinished
from .webdav import WebDav

T = TypeVar("T")
Say = Callable[[str, str], None]
DialStore = Callable[[int], socket.socket]
"""A connected, blocking socket to that store of the plan; raises `Refused` or `Trouble`."""

SignFor = Callable[[int, str, str, str, Mapping[str, str], str], Mapping[str, str]]
"""The headers of a request to that store: its method, bucket, key, query, and the digest of its body; or raises."""

INPUT, OUTPUT = "input", "output"
MOST_OBJECTS = 100_000  # of a mounted folder
MOST_NAMES = 16 * 2**20  # bytes of all their names together: they are kept until the script has ended
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 15.0
_SOON, _NOT_YET = 0.02, 15.0  # seconds: the first pause, and all of the patience, with a store that will know soon


class Mover:
    """Moves the files of one run. `job` and `mount` are handles of its folders, `owner` is the user who owns them."""

    def __init__(
        self, plan: Plan, dial: DialStore, say: Say, sign: SignFor, *, job: int, mount: int = -1, owner: int
    ) -> None:
        self._plan = plan
        self._dial = dial
        self._sign = sign
        self._say = say
        self._job, self._mount, self._owner = job, mount, owner
        self._opened: dict[int, S3 | WebDav] = {}
        self._brought = 0  # bytes

    def close(self) -> None:
        for store in self._opened.values():
            store.close()

    def bring(self) -> dict[str, list[int]]:
        """The input file and the mounted folder are in place when it returns; what of the latter came."""
        fetch = self._plan.input
        if fetch is not None:
            store = self._s3(fetch.store)
            self._download(store, fetch.bucket, fetch.key, self._job, f"{INPUT}/{fetch.name}")
            self._say("INFO", f"input {fetch.bucket}/{fetch.key} is in place")
        try:
            return self._fill_mount()
        except beneath.TooDeep:
            raise Refused("the mounted folder has folders nested too deep") from None
        except beneath.Unreadable as error:
            raise Refused(f"the mounted folder: {error}") from None

    def carry(self) -> int:
        """Every output is stored when it returns; how many there were."""
        count = 0
        try:
            for file in self._left(OUTPUT) if self._plan.outputs else ():
                name = file.relative.rpartition("/")[2]
                for output in self._plan.outputs:
                    if output.takes(name):
                        self._upload(output.store, output.bucket, _joined(output.folder, file.relative), file)
                        count += 1
            return count + self._carry_mount()
        except (beneath.TooDeep, beneath.Unreadable) as error:
            raise Refused(str(error)) from None

    # A mounted folder is a copy: all of it comes before the script, what changed goes back after it.

    def _fill_mount(self) -> dict[str, list[int]]:
        mount = self._plan.mount
        if mount is None:
            return {}
        store, prefix = self._s3(mount.store), _joined(mount.folder, "")
        for key in self._keys(store, mount.bucket, prefix):
            steps = key.removeprefix(prefix).split("/")
            if not set(steps) & {"", ".", ".."}:  # markers of folders, and names no file can have
                beneath.make_folders(self._mount, steps[:-1])
                self._download(store, mount.bucket, key, self._mount, "/".join(steps))
        return {file.relative: [file.size, file.modified] for file in beneath.left_files(self._mount, "", self._owner)}

    def _keys(self, store: S3, bucket: str, prefix: str) -> Iterator[str]:
        """Page by page, and not for ever: how long the list is says the store, which may be anybody's."""
        token, count, size = "", 0, 0
        while True:
            page = self._patiently(f"list {bucket}/{prefix}", functools.partial(store.page, bucket, prefix, token))
            for key in page.keys:
                count, size = count + 1, size + len(key.encode())
                if count > MOST_OBJECTS or size > MOST_NAMES:
                    most = f"{MOST_OBJECTS:,} objects, or {MOST_NAMES >> 20} MiB of their names"
                    raise Refused(f"could not mount {bucket}/{prefix}: it has more than {most}; mount a smaller folder")
                yield key
            if not page.following:
                return
            token = page.following

    def _carry_mount(self) -> int:
        mount, count = self._plan.mount, 0
        for file in beneath.left_files(self._mount, "", self._owner) if mount is not None else ():
            assert mount is not None
            if self._plan.mounted.get(file.relative) != [file.size, file.modified]:
                self._upload(mount.store, mount.bucket, _joined(mount.folder, file.relative), file)
                count += 1
        return count

    def _left(self, folder: str) -> Iterator[LeftFile]:
        return beneath.left_files(self._job, folder, self._owner)

    def _download(self, store: S3, bucket: str, key: str, top: int, path: str) -> None:
        def once() -> None:
            with beneath.fresh_file(top, path) as file:
                store.download(bucket, key, file, self._room_for)
                self._brought += os.fstat(file).st_size

        self._patiently(f"download {bucket}/{key}", once)

    def _room_for(self, length: int) -> None:
        if self._plan.disk and self._brought + length > self._plan.disk:
            raise TooLarge(self._brought + length, self._plan.disk)

    def _upload(self, index: int, bucket: str, key: str, file: LeftFile) -> None:
        def note(begun: str) -> None:
            unfinished.keep(self._job, Unfinished(index, bucket, key, begun))

        def once() -> None:
            store = self._store(index)
            self._abort_unfinished()
            if isinstance(store, S3):
                store.upload(bucket, key, file.fd, file.size, note)
                unfinished.forget(self._job)
            else:
                store.upload(bucket, key, file.fd, file.size)

        self._patiently(f"upload {bucket}/{key}", once)
        self._say("INFO", f"output {bucket}/{key} is stored ({file.size} bytes)")

    def _abort_unfinished(self) -> None:
        """Of an earlier try, which may have been cut short in any moment."""
        left = unfinished.kept(self._job)
        if left is None or not self._may_write(left):
            return
        with contextlib.suppress(Refused):  # it is gone by now
            self._s3(left.store).abort(left.bucket, left.key, left.begun)
        unfinished.forget(self._job)

    def _may_write(self, left: Unfinished) -> bool:
        mounts = () if self._plan.mount is None else (self._plan.mount,)
        return any(
            (one.store, one.bucket) == (left.store, left.bucket) and left.key.startswith(_joined(one.folder, ""))
            for one in (*self._plan.outputs, *mounts)
        )

    def _s3(self, index: int) -> S3:
        store = self._store(index)
        if not isinstance(store, S3):
            raise Refused("a WebDAV server cannot be read from here: use minio or s3")
        return store

    def _store(self, index: int) -> S3 | WebDav:
        if index not in self._opened:
            self._opened[index] = self._open(index)
        return self._opened[index]

    def _open(self, index: int) -> S3 | WebDav:
        told = self._plan.stores[index]
        if told.kind == "webdav":
            return WebDav(told, lambda: self._dial(index))
        return S3(told, lambda: self._dial(index), functools.partial(self._sign, index) if told.asks else None)

    def _patiently(self, what: str, work: Callable[[], T]) -> T:
        began, pause, soon = time.monotonic(), _FIRST_PAUSE, _SOON
        while True:
            try:
                return work()
            except TooLarge:
                raise
            except Refused as error:
                raise Refused(f"could not {what}: {error}") from error
            except ValueError:  # its own words may hold the keys
                shown = what.encode(errors="replace").decode()
                raise Refused(f"could not {shown}: {ODD_LETTERS}") from None
            except NotYet as error:
                if time.monotonic() - began > min(_NOT_YET, self._plan.patience):
                    raise Unheard(f"could not {what}: {error}") from error
                time.sleep(soon)
                soon = min(soon * 2, 1.0)
                continue
            except Trouble as error:
                if time.monotonic() + pause - began > self._plan.patience:
                    raise Trouble(f"could not {what}: {error}") from error
                self._say("WARNING", f"{what}: {error}; trying again in {pause:g} s")
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _joined(folder: str, name: str) -> str:
    return f"{folder.strip('/')}/{name}" if folder.strip("/") else name


@contextlib.contextmanager
def mover(plan: Plan, dial: DialStore, say: Say, sign: SignFor, *, job: int, mount: int = -1) -> Iterator[Mover]:
    """For the user this process runs as, who is the script's."""
    made = Mover(plan, dial, say, sign, job=job, mount=mount, owner=os.getuid())
    try:
        yield made
    finally:
        made.close()
