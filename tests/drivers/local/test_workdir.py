"""Is what a run came to kept whole, and is only the script's own left to be read?"""

import os
import shutil
import tracemalloc
from pathlib import Path

import pytest

from hansa.drivers.local.workdir import State, Workdir
from hansa.drivers.runs.stager import beneath
from hansa.services import Outcome


@pytest.fixture
def workdir(tmp_path: Path) -> Workdir:
    made = Workdir(tmp_path, "job-1")
    made.create("echo hi\n", "name: tool\n", {".call": b"call", "input/event-file": b"sent"})
    return made


def names(workdir: Workdir) -> list[str]:
    return [file.relative for file in workdir.left(100)]


def many_links(folder: Path, count: int) -> None:
    """Names of one link, which take next to no room on a disk."""
    folder.joinpath("0").symlink_to("nowhere")
    for number in range(1, count):
        os.link(folder / "0", folder / f"{number}", follow_symlinks=False)


def test_states_are_kept_and_replaced(workdir: Workdir) -> None:
    assert workdir.state is None
    ran = State(Outcome(True, 0, "", 1.5), staged=False)
    workdir.keep(ran)
    assert workdir.state == ran
    done = State(Outcome(False, 0, "an output could not be stored"), staged=True)
    workdir.keep(done)
    assert workdir.state == done
    assert sorted(path.name for path in workdir.home.iterdir()) == ["config", "disk", "state.json"]
    assert (workdir.home / "state.json").stat().st_mode & 0o777 == 0o600


def test_creating_it_again_forgets_everything(workdir: Workdir) -> None:
    workdir.keep(State(Outcome(True, 0, ""), staged=False))
    (workdir.output / "old").touch()
    workdir.create("echo hi\n", "name: tool\n", {})
    assert workdir.state is None
    assert names(workdir) == []


def test_files_are_read_through_what_was_opened(workdir: Workdir) -> None:
    (workdir.output / "a").write_text("right")
    for file in workdir.left(100):
        (workdir.output / "a").unlink()
        (workdir.output / "a").symlink_to("/etc/passwd")  # too late
        assert file.read() == b"right"


def test_names_in_other_encodings_keep_what_can_be_read(workdir: Workdir) -> None:
    (Path(os.fsdecode(os.fsencode(workdir.output) + b"/gr\xfcn"))).touch()
    assert names(workdir) == ["gr\ufffdn"]


def test_no_descriptor_is_left_open(workdir: Workdir) -> None:
    for number in range(5):
        (workdir.output / f"{number}").mkdir()
        (workdir.output / f"{number}" / "file").touch()
    before = len(os.listdir("/proc/self/fd"))
    assert len(names(workdir)) == 5
    files = workdir.left(100)
    next(files)
    files.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_links_alone_are_no_output(workdir: Workdir) -> None:
    many_links(workdir.output, 10)
    assert not workdir.has_output
    (workdir.output / "file").touch()
    assert workdir.has_output


def test_it_does_not_take_a_look_at_every_name_to_find_out_whether_something_is_left(workdir: Workdir) -> None:
    """So many links, and no file behind them: the question was answered before all of them were looked at."""
    many_links(workdir.output, 2000)
    assert workdir.has_output
    assert workdir.has_output, "also when it is asked again"


def test_no_more_names_are_looked_at_than_allowed(workdir: Workdir) -> None:
    many_links(workdir.output, 101)
    with pytest.raises(beneath.TooMany, match="more than 100 files, folders and links"):
        names(workdir)


def test_removing_many_names_takes_no_memory_of_the_managers(workdir: Workdir) -> None:
    many_links(workdir.output, 50_000)
    tracemalloc.start()
    try:
        workdir.remove()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not workdir.home.exists()
    assert most < 2**20


def test_removing_is_harmless_to_repeat_and_follows_no_link(workdir: Workdir, tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "file").touch()
    (workdir.output / "link").symlink_to(keep)
    workdir.remove()
    workdir.remove()
    assert (keep / "file").exists()
    assert not workdir.home.exists()


def test_a_call_is_laid_out_whatever_stands_in_its_way(workdir: Workdir, tmp_path: Path) -> None:
    """A worker waits in its folder for a call: should something of it run already, it leads us nowhere."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (workdir.job / ".call").unlink()
    (workdir.job / ".call").symlink_to(victim / "planted")
    workdir.lay_out({".call": b"fresh"})
    assert not (workdir.job / ".call").is_symlink()
    assert (workdir.job / ".call").read_bytes() == b"fresh"
    shutil.rmtree(workdir.input)
    workdir.input.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic"):
        workdir.lay_out({"input/event-file": b"stolen"})
    assert list(victim.iterdir()) == []
