"""Does nobody but the manager's user see into the data folder, whatever it was like before?"""

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hansa.bootstrap import data_folder


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir(mode=0o755)
    return made


def test_a_folder_from_before_is_closed_and_said_so(data: Path) -> None:
    data.chmod(0o755)
    (data / "logs").mkdir(mode=0o755)
    for name in ("hansa.db", "hansa.db-wal", "admin-password"):
        (data / name).touch(mode=0o644)
    (data / "hansa.toml").touch(mode=0o644)
    with capture_logs() as said:
        data_folder.close(data)
    assert (mode(data), mode(data / "logs")) == (0o700, 0o700)
    assert {mode(data / name) for name in ("hansa.db", "hansa.db-wal", "admin-password")} == {0o600}
    assert mode(data / "hansa.toml") == 0o644  # not ours to change, and nobody gets here any more
    assert [line["event"] for line in said] == ["the data folder was open to others and is private now"]


def test_a_new_one_is_private_and_needs_no_words(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with capture_logs() as said:
            data_folder.close(tmp_path / "new" / "data")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new" / "data") == 0o700
    assert said == []


def test_jobs_that_walk_may_pass_but_not_look(data: Path) -> None:
    data_folder.close(data)
    data_folder.let_jobs_pass(data, walked=True)
    assert {mode(data), mode(data / "work"), mode(data / "volumes")} == {0o711}
    with capture_logs() as said:
        data_folder.close(data)  # at the next start
    assert (mode(data), said) == (0o700, [])
    data_folder.let_jobs_pass(data, walked=False)
    assert mode(data) == 0o700


@pytest.mark.parametrize("shared", ["sticky", "foreign"])
def test_a_folder_of_others_is_not_taken_from_them(data: Path, shared: str) -> None:
    if shared == "foreign":
        (data / "www").mkdir()
        data.chmod(0o755)
    else:
        data.chmod(0o1777)
    (data / "hansa.db").touch(mode=0o644)
    with capture_logs() as said:
        data_folder.close(data)
    assert mode(data) == (0o755 if shared == "foreign" else 0o1777)
    assert mode(data / "hansa.db") == 0o600
    assert said[0]["event"] == "the data folder stays open to others"


def test_a_link_is_left_as_its_maker_wanted_it(data: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    (data / "objects").symlink_to(tmp_path / "disk")
    data_folder.close(data)
    assert mode(tmp_path / "disk") == 0o755


def test_a_folder_of_a_pods_group_stays_with_that_group(data: Path) -> None:
    """Or Kubernetes would open every file in it to the group at the next start, the vault's key too."""
    data.chmod(0o2775)
    data_folder.close(data)
    assert mode(data) == 0o2770
