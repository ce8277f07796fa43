"""Where do things lie that are made once and used by every later run, and how is a half-made one never used?

A thing is a folder below `hansa-test` in the user's cache, named for what it is made of. It is made beside its place
and renamed when it is whole, so whoever finds it may use it without asking. Two runs that want the same thing do not
make it twice: the second waits. Removing any of it is safe while no test runs.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

_CHECKOUT = Path(__file__).parents[3]

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
    """The folder of that name, filled by `make` if nobody did so before."""
    folder = root() / name
    if folder.is_dir():
        return folder
    with _alone(name, say):
        if folder.is_dir():
            return folder
        for leftover in root().glob(f".{name}.*"):  # of a run that was killed: its lock is ours now
            shutil.rmtree(leftover, ignore_errors=True)
        beside = root() / f".{name}.{os.getpid()}"
        beside.mkdir()
        try:
            make(beside)
            beside.rename(folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _alone(name: str, say: Say) -> Iterator[None]:
    root().mkdir(parents=True, exist_ok=True)
    with open(root() / f"{name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that makes {name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
