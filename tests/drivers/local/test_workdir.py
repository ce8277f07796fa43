"""Is what a run came to kept whole, and is only the script's own left to be read?"""

import os
from pathlib import Path

import pytest

from hansa.drivers.local.workdir import State, Workdir
from hansa.drivers.runs.left_files import left_files
from hansa.services import Outcome


@pytest.fixture
def workdir(tmp_path: Path) -> Workdir:
    made = Workdir(tmp_path, "job-1")
    made.create("echo hi\n", "name: tool\n")
    return made


def names(workdir: Workdir) -> list[str]:
    return [file.relative for file in left_files(workdir.output, workdir.owner)]


def test_states_are_kept_and_replaced(workdir: Workdir) -> None:
    assert workdir.state is None
    ran = State(Outcome(True, 0, "", 1.5), staged=False)
    workdir.keep(ran)
    assert workdir.state == ran
    done = State(Outcome(False, 0, "an output could not be stored"), staged=True)
    workdir.keep(done)
    assert workdir.state == done
    assert sorted(path.name for path in workdir.home.iterdir()) == ["config", "job", "mount", "state.json"]
    assert (workdir.home / "state.json").stat().st_mode & 0o777 == 0o600


def test_creating_it_again_forgets_everything(workdir: Workdir) -> None:
    workdir.keep(State(Outcome(True, 0, ""), staged=False))
    (workdir.output / "old").touch()
    workdir.create("echo hi\n", "name: tool\n")
    assert workdir.state is None
    assert names(workdir) == []


def test_files_are_read_through_what_was_opened(workdir: Workdir) -> None:
    (workdir.output / "a").write_text("right")
    for file in left_files(workdir.output, workdir.owner):
        (workdir.output / "a").unlink()
        (workdir.output / "a").symlink_to("/etc/passwd")  # too late
        assert file.path.read_text() == "right"


def test_names_in_other_encodings_keep_what_can_be_read(workdir: Workdir) -> None:
    (Path(os.fsdecode(os.fsencode(workdir.output) + b"/gr\xfcn"))).touch()
    assert names(workdir) == ["gr\ufffdn"]


def test_no_descriptor_is_left_open(workdir: Workdir) -> None:
    for number in range(5):
        (workdir.output / f"{number}").mkdir()
        (workdir.output / f"{number}" / "file").touch()
    before = len(os.listdir("/proc/self/fd"))
    assert len(names(workdir)) == 5
    files = left_files(workdir.output, workdir.owner)
    next(files)
    files.close()  # type: ignore[attr-defined]
    assert len(os.listdir("/proc/self/fd")) == before


def test_removing_is_harmless_to_repeat_and_follows_no_link(workdir: Workdir, tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "file").touch()
    (workdir.output / "link").symlink_to(keep)
    workdir.remove()
    workdir.remove()
    assert (keep / "file").exists()
    assert not workdir.home.exists()
