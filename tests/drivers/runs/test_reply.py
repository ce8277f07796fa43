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
