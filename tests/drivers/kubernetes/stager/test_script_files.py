"""Is anything but a regular file read, written through or waited at, where a script can put what it likes?"""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from hansa.drivers.kubernetes.stager import script_files
from hansa.drivers.runs.stager.errors import Refused

SECRET = b"0\n"


def _link(path: Path) -> None:
    path.symlink_to(path.with_name("secret"))


def _endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


ODD = pytest.mark.parametrize("put", [_link, _endless, os.mkfifo, Path.mkdir, _socket])
Put = Callable[[Path], None]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # the name of a socket is short
    (tmp_path / "secret").write_bytes(SECRET)
    return tmp_path / "said"


@ODD
def test_nothing_else_is_read(put: Put, place: Path) -> None:
    put(place)
    for read in (lambda: script_files.read(str(place), 10), lambda: script_files.exit_code(str(place))):
        with pytest.raises(Refused, match="said"):
            read()


def test_a_file_is_read_as_far_as_was_asked(place: Path) -> None:
    assert script_files.read(str(place), 4) is None
    place.write_bytes(b"0123456789")
    assert script_files.read(str(place), 4) == b"0123"


@pytest.mark.parametrize(("said", "code"), [(b"", None), (b"1", None), (b"0\n", 0), (b"137\n", 137)])
def test_an_exit_code_is_a_whole_line(said: bytes, code: int | None, place: Path) -> None:
    place.write_bytes(said)
    assert script_files.exit_code(str(place)) == code


@pytest.mark.parametrize("said", [b"nonsense\n", b"\xff\n", b"-1\n", b"0\n0\n", b"9" * 100, b"\n"])
def test_nonsense_is_no_exit_code(said: bytes, place: Path) -> None:
    place.write_bytes(said)
    with pytest.raises(Refused):
        script_files.exit_code(str(place))


@pytest.mark.parametrize("put", [_link, _endless, os.mkfifo, _socket])
def test_what_is_written_goes_into_a_file_of_its_own(put: Put, place: Path) -> None:
    put(place)
    script_files.write(str(place), b"said")
    assert (place.is_symlink(), place.read_bytes()) == (False, b"said")
    assert place.with_name("secret").read_bytes() == SECRET


def test_a_folder_in_the_way_is_an_error(place: Path) -> None:
    place.mkdir()
    with pytest.raises(OSError, match="said"):
        script_files.write(str(place), b"said")


def test_a_pipe_is_told_once_somebody_reads(place: Path) -> None:
    os.mkfifo(place)
    assert not script_files.tell(str(place), b"go")
    reader = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert script_files.tell(str(place), b"go")
        assert os.read(reader, 10) == b"go"
    finally:
        os.close(reader)


@pytest.mark.parametrize("put", [_link, _endless, Path.mkdir, Path.touch])
def test_nothing_but_a_pipe_is_told(put: Put, place: Path) -> None:
    put(place)
    with pytest.raises(Refused):
        script_files.tell(str(place), b"go")
    assert place.with_name("secret").read_bytes() == SECRET
