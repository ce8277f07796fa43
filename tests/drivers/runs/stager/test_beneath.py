"""Does a folder that somebody else changes all the time ever lead us out of it?"""

import contextlib
import ctypes
import os
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hansa.drivers.runs.stager import beneath

_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
TURNS = 3000


@pytest.fixture
def job(tmp_path: Path) -> Path:
    made = tmp_path / "job"
    (made / "input").mkdir(parents=True)
    return made


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    made = tmp_path / "victim"
    made.mkdir()
    (made / "secret").write_text("secret")
    return made


@contextlib.contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Somebody exchanges the two in a loop, as fast as the kernel lets them."""
    libc, over, swapped = ctypes.CDLL(None), threading.Event(), 0

    def swap() -> None:
        nonlocal swapped
        while not over.is_set():
            if libc.renameat2(_AT_FDCWD, bytes(one), _AT_FDCWD, bytes(other), _RENAME_EXCHANGE) == 0:
                swapped += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert swapped > 10, "nobody stood in the way"


@pytest.fixture(params=["openat2", "step by step"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "step by step":
        monkeypatch.setattr(beneath, "_OPENAT2", 9999)  # a kernel that does not know the call
    return str(request.param)


def often(work: Callable[[int], None]) -> int:
    """How often it was done; whatever stands in the way for a moment is refused."""
    done = 0
    for turn in range(TURNS):
        try:
            work(turn)
            done += 1
        except OSError:
            continue
    return done


def test_nothing_is_written_through_a_swapped_folder(job: Path, victim: Path, way: str) -> None:
    link = job / "other"
    link.symlink_to(victim)
    before = sorted(victim.iterdir())
    with beneath.handle(job) as top, swapping(job / "input", link):
        assert often(lambda turn: beneath.write(top, f"input/f{turn}", b"tenant's bytes")) > 0
    assert sorted(victim.iterdir()) == before


def test_nothing_is_overwritten_through_a_swapped_file(job: Path, victim: Path, way: str) -> None:
    (job / "input" / "file").write_text("mine")
    link = job / "input" / "other"
    link.symlink_to(victim / "secret")
    with beneath.handle(job) as top, swapping(job / "input" / "file", link):
        assert often(lambda _: beneath.write(top, "input/file", b"tenant's bytes")) > 0
    assert (victim / "secret").read_text() == "secret"


def test_nothing_is_read_through_a_swapped_folder(job: Path, victim: Path, way: str) -> None:
    (job / "output").mkdir()
    (job / "output" / "mine").write_text("mine")
    link = job / "other"
    link.symlink_to(victim)
    found: set[bytes] = set()

    def read(_: int) -> None:
        found.update(file.read() for file in beneath.left_files(top, "output", os.getuid()))

    with beneath.handle(job) as top, swapping(job / "output", link):
        assert often(read) > 0
    assert found == {b"mine"}


def test_folders_are_not_made_elsewhere(job: Path, victim: Path, way: str) -> None:
    link = job / "other"
    link.symlink_to(victim)
    with beneath.handle(job) as top, swapping(job / "input", link):
        assert often(lambda turn: beneath.make_folders(top, ["input", f"d{turn}"])) > 0
    assert [path.name for path in victim.iterdir()] == ["secret"]


@pytest.mark.parametrize("path", ["../victim/secret", "/etc/passwd", "input/../../victim/secret", "link/secret"])
def test_no_way_leads_out(job: Path, victim: Path, way: str, path: str) -> None:
    (job / "link").symlink_to(victim)
    with beneath.handle(job) as top, pytest.raises(OSError):
        beneath.open_beneath(top, path, os.O_RDONLY)


def test_the_stagers_own_files_are_no_outputs(job: Path) -> None:
    """A link into /proc would be read with the eyes of whoever follows it."""
    (job / "output").mkdir()
    for name in ("environ", "mem", "cmdline", "maps"):
        (job / "output" / name).symlink_to(f"/proc/self/{name}")
    (job / "output" / "self").symlink_to("/proc/self")
    with beneath.handle(job) as top:
        assert list(beneath.left_files(top, "output", os.getuid())) == []


def test_many_names_do_not_take_much_memory(job: Path) -> None:
    """Names cost their owner next to nothing: thousands of one link, and one of a file."""
    (job / "output").mkdir()
    (job / "output" / "0").symlink_to("nowhere")
    for number in range(1, 50_000):
        os.link(job / "output" / "0", job / "output" / f"{number}", follow_symlinks=False)
    (job / "output" / "file").touch()
    tracemalloc.start()
    try:
        with beneath.handle(job) as top:
            found = [file.relative for file in beneath.left_files(top, "output", os.getuid())]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == ["file"]
    assert most < 2**20
