"""Is an answer made of what a script left, and is too much of it refused in words?"""

import os
from pathlib import Path

import pytest

from hansa.drivers.local.workdir import Workdir
from hansa.drivers.runs import reply


@pytest.fixture
def workdir(tmp_path: Path) -> Workdir:
    made = Workdir(tmp_path, "run-1")
    made.create("true", "name: tool", {})
    return made


def test_so_many_files_are_no_answer(workdir: Workdir) -> None:
    (workdir.output / "0").touch()
    for number in range(1, reply.MOST_NAMES + 1):
        os.link(workdir.output / "0", workdir.output / f"{number}")
    with pytest.raises(reply.ReplyTooLarge, match=r"more than 10,000 files, folders and links: pack its results into"):
        reply.of_files(workdir.left(reply.MOST_NAMES))


def test_nothing_is_no_answer(workdir: Workdir) -> None:
    (workdir.output / "link").symlink_to("/etc/passwd")
    assert reply.of_files(workdir.left(reply.MOST_NAMES)) is None


def test_many_empty_files_with_long_names_are_no_answer(workdir: Workdir) -> None:
    """Each name stands twice in a zip, and counts in memory like any content."""
    folder = workdir.output
    for step in range(15):
        folder = folder / (f"{step:02}" + "d" * 230)
        os.mkdir(folder)
    here = os.open(folder, os.O_RDONLY)
    try:
        for number in range(9_900):
            os.close(os.open(f"{number:04}" + "f" * 240, os.O_CREAT | os.O_WRONLY, dir_fd=here))
    finally:
        os.close(here)
    for answer in (reply.size_of, reply.of_files):
        with pytest.raises(reply.ReplyTooLarge, match="left more than 64Mi"):
            answer(workdir.left(reply.MOST_NAMES))


def test_an_answer_is_no_larger_than_it_was_said_to_be(workdir: Workdir) -> None:
    for number in range(500):
        (workdir.output / f"{number}-{'n' * 200}").write_bytes(os.urandom(10))
    made = reply.of_files(workdir.left(reply.MOST_NAMES))
    assert made is not None
    assert len(made) <= reply.size_of(workdir.left(reply.MOST_NAMES))
