"""Where do things lie that are made once and used by every later run, and how is a half-made one never used?

A thing is a folder below `hansa-test` in the user's cache, named for what it is made of. It is made beside its place
and renamed when it is whole, so whoever finds it may use it without asking. Two runs that want the same thing do not
make it twice: the second waits. Old ones go when there are newer ones; removing all is safe while no test runs.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_CHECKOUT = Path(__file__).parents[2]
_KEPT = 3  # of each kind, besides all that some run may be using now
_IN_USE_SECONDS = 7200.0

Say = Callable[[str], None]


def quiet(line: str) -> None:
    """For those who want no progress lines."""


def root() -> Path:
    """`XDG_CACHE_HOME`, or `.cache` at home; in the checkout for an account that has no home."""
    home = os.environ.get("HOME")
    base = os.environ.get("XDG_CACHE_HOME") or (os.path.join(home, ".cache") if home else str(_CHECKOUT / ".cache"))
    return Path(base).resolve() / "hansa-test"


def key(*ingredients: str | bytes) -> str:
    """Short, and another one as soon as any ingredient is another."""
    whole = hashlib.sha256()
    for one in ingredients:
        raw = one.encode() if isinstance(one, str) else one
        whole.update(len(raw).to_bytes(8, "big") + raw)
    return whole.hexdigest()[:12]


def made(name: str, make: Callable[[Path], None], say: Say = quiet) -> Path:
    """The folder of that name, filled by `make` if nobody did so before. A name is a kind and a key: `image-4711`."""
    folder, kind = root() / name, name.rpartition("-")[0]
    if _used(folder):
        return folder
    with _alone(kind, say):
        if _used(folder):
            return folder
        for leftover in _of_kind(f".{kind}"):  # by a run that was killed: its lock is ours now
            shutil.rmtree(leftover, ignore_errors=True)
        beside = root() / f".{name}"
        beside.mkdir()
        try:
            make(beside)
            beside.rename(folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        _used(folder)
        _forget(kind)
    return folder


def _used(folder: Path) -> bool:
    """Whether it is there; from now on the most recently used of its kind."""
    with contextlib.suppress(OSError):  # it may be another account's
        os.utime(folder)
    return folder.is_dir()


def _forget(kind: str) -> None:
    """An image of our own sources is another one with every change: those nobody came back to go."""
    latest = sorted(_of_kind(kind), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in latest[_KEPT:]:
        if path.stat().st_mtime < time.time() - _IN_USE_SECONDS:
            shutil.rmtree(path, ignore_errors=True)


def _of_kind(kind: str) -> list[Path]:
    return [path for path in root().iterdir() if path.name.rpartition("-")[0] == kind and path.is_dir()]


@contextlib.contextmanager
def _alone(kind: str, say: Say) -> Iterator[None]:
    root().mkdir(parents=True, exist_ok=True)
    with open(root() / f"{kind}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that makes {kind}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
