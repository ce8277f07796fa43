"""Which disk does a run write to, and how much of it may it have?

Where images can be used (`images.py`) each run has a file system of its own, made ahead, and the limit is hard.
Elsewhere it is a plain folder: the launcher watches it and ends a run that uses too much. `bootstrap` opens one
`Disks`; `Workdir` asks it where the files of a run are. All calls block shortly: use them from a thread.
"""

import contextlib
import itertools
import os
import re
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import structlog

from hansa.drivers.local import images
from hansa.drivers.local.images import Attached
from hansa.drivers.local.launcher import linux

_log = structlog.get_logger(__name__)

Kind = Literal["image", "watched"]
IMAGE = "disk.img"
_SHELF = ".disks"
_READY = 2
_AFTER = 0.02  # seconds: the run that took one goes first


class Disks:
    """The disks of all runs below `work`."""

    def __init__(
        self,
        work: Path,
        *,
        hard: bool = False,
        placed: bool = False,
        size: int = 0,
        why_soft: str = "images are off",
    ) -> None:
        """`size` is of those kept ready. `placed`: each is mounted where everybody sees it, as containers need it."""
        self.hard = hard
        self.why_soft = why_soft
        self._work = work.resolve()  # as the kernel tells mounts
        self._placed = placed
        self._size = size
        self._shelf = self._work / _SHELF
        self._open: dict[Path, Attached] = {}
        self._volumes: dict[Path, Attached] = {}
        self._ready: list[tuple[Path, Attached]] = []
        self._numbers = itertools.count()
        self._turn = threading.RLock()  # nobody waits for a disk while they have it
        self._attaching = weakref.WeakValueDictionary[Path, threading.Lock]()  # for as long as somebody waits there
        self._closed = False
        self._making = ThreadPoolExecutor(1, "disks") if hard else None

    @classmethod
    def open(cls, work: Path, *, hard: bool, size: int, placed: bool = False, why_soft: str = "") -> "Disks":
        """Clears first what a manager that died left, but for the disks of jobs. `hard` if images can be used here;
        else `why_soft` says why not."""
        made = cls(work, hard=hard, placed=placed, size=max(size, images.SMALLEST), why_soft=why_soft)
        made._clear()
        if hard:
            made._shelf.mkdir(parents=True, mode=0o700)
            made._later(made._refill)
        return made

    @property
    def kind(self) -> Kind:
        return "image" if self.hard else "watched"

    # of one run

    def make(self, home: Path, size: int) -> None:
        """The run whose folder is `home` has an empty disk."""
        folder = home / "disk"
        folder.mkdir(parents=True)
        folder.chmod(0o711)
        if not self.hard or not size:
            return
        size = max(size, images.SMALLEST)
        found = self._take() if size == self._size else None
        if found is None:
            found = self._fresh(size)
        image, attached = found
        image.rename(home / IMAGE)
        with self._turn:
            self._open[home] = attached
        if self._placed:
            linux.give_place(attached.top, str(folder))

    def reach(self, home: Path) -> Path:
        """Where we come to the files of a run. A path through `home` shows them to that run alone."""
        attached = self._attached(home)
        return attached.folder if attached is not None else home / "disk"

    def device(self, home: Path) -> int | None:
        """To be mounted for the run, at its folder `disk`; None where that is a plain folder, or mounted already."""
        attached = self._attached(home)
        return attached.device if attached is not None and not self._placed else None

    def is_full(self, home: Path) -> bool:
        attached = self._open.get(home)
        return attached is not None and attached.full

    def write_out(self, home: Path) -> None:
        """What the run wrote outlives the machine's own death from here on; raises OSError if it cannot."""
        attached = self._open.get(home)
        if attached is not None:
            attached.write_out(home / IMAGE)

    def drop(self, home: Path) -> None:
        """The image itself goes with the folder."""
        with self._turn:
            attached = self._open.pop(home, None)
        if self._placed:
            linux.take_place(str(home / "disk"))
        if attached is not None:
            attached.close()

    def _attached(self, home: Path) -> Attached | None:
        found = self._open.get(home)
        if found is not None or not (home / IMAGE).exists():
            return found
        with self._alone(home):  # of a manager before us
            found = self._open.get(home)
            if found is None:
                found = images.attach(home / IMAGE)
                if self._placed:
                    linux.give_place(found.top, str(home / "disk"))
                with self._turn:
                    self._open[home] = found
            return found

    @contextlib.contextmanager
    def _alone(self, image: Path) -> Iterator[None]:
        with self._turn:
            lock = self._attaching.setdefault(image, threading.Lock())
        with lock:
            yield

    # of volumes, which several runs may have at a time

    def volume(self, image: Path, folder: Path) -> Attached | None:
        """To be mounted for a run at `folder`, and closed once it is; None where it is mounted already."""
        with self._alone(folder):
            if not self._placed:
                return images.attach(image, lasting=True)
            if folder not in self._volumes:
                attached = images.attach(image, lasting=True)
                linux.give_place(attached.top, str(folder))
                with self._turn:
                    self._volumes[folder] = attached
            return None

    def drop_volume(self, folder: Path) -> None:
        with self._alone(folder):
            with self._turn:
                attached = self._volumes.pop(folder, None)
            if self._placed:
                linux.take_place(str(folder))
            if attached is not None:
                attached.close()

    def taken(self) -> int:
        """Bytes that images of runs take by now."""
        with self._turn:
            found = [*(home / IMAGE for home in self._open), *(image for image, _ in self._ready)]
        return sum(map(images.taken, found))

    def close(self) -> None:
        """All handles are closed; the images of jobs stay."""
        self._closed = True
        if self._making is not None:
            self._making.shutdown(cancel_futures=True)
        with self._turn:
            homes, volumes, ready = list(self._open), list(self._volumes), list(self._ready)
            self._ready.clear()
        for home in homes:
            self.drop(home)
        for folder in volumes:
            self.drop_volume(folder)
        for _, attached in ready:
            attached.close()
        shutil.rmtree(self._shelf, ignore_errors=True)

    # kept ready, so that no run waits for its disk

    def _take(self) -> tuple[Path, Attached] | None:
        with self._turn:
            found = self._ready.pop() if self._ready else None
        self._later(self._refill)
        return found

    def _later(self, work: Callable[[], None]) -> None:
        if self._making is not None and not self._closed:
            with contextlib.suppress(RuntimeError):  # closed in this moment
                self._making.submit(work)

    def _refill(self) -> None:
        try:
            while len(self._ready) < _READY and not self._closed:
                time.sleep(_AFTER)
                made = self._fresh(self._size)
                with self._turn:
                    self._ready.append(made)
        except OSError as error:
            _log.warning("no disk could be made ready for the next run", reason=str(error))

    def _fresh(self, size: int) -> tuple[Path, Attached]:
        image = self._shelf / f"{next(self._numbers)}.img"
        if size == self._size:
            images.copy(self._template(), image)
        else:
            images.make(image, size, journal=False)
        return image, images.attach(image, fresh=True)

    def _template(self) -> Path:
        template = self._shelf / "template"
        with self._alone(template):
            if not template.exists():
                images.make(template, self._size, journal=False)
        return template

    def _clear(self) -> None:
        for folder in mounted_below(self._work):
            linux.take_place(folder)
        shutil.rmtree(self._shelf, ignore_errors=True)


def mounted_below(folder: Path) -> list[str]:
    """Everything that is mounted there, the innermost first."""
    with open("/proc/self/mountinfo", "rb") as table:
        places = [_spelled_out(line.split(b" ")[4]) for line in table]
    return sorted((place for place in places if place.startswith(f"{folder}/")), key=len, reverse=True)


def _spelled_out(place: bytes) -> str:
    """The kernel writes a space, a tab, a newline and a backslash in octal digits, and any other byte as it is."""
    return os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), place))


def trouble() -> str:
    """Why images cannot be used on this machine, or "". Found by trying the real thing."""
    if os.geteuid() != 0:
        return "only root can mount images"
    try:
        with tempfile.TemporaryDirectory(prefix="hansa-disk-") as folder:
            image = Path(folder, "trial.img")
            images.make(image, images.SMALLEST, journal=False)
            attached = images.attach(image, fresh=True)
            try:
                (attached.folder / "trial").write_bytes(b"trial")
            finally:
                attached.close()
    except OSError as error:
        return f"an image cannot be mounted here: {error.strerror or error}"
    return ""
