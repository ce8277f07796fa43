"""What does a start say that finds no room on its disk? Which folder, and what to do."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from hansa.bootstrap import data_folder
from hansa.store import DatabaseFull, make_engine, schema, sqlite_url

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
_SECONDS = 90


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path) -> None:
    facts = os.statvfs(disk)
    with (disk / "somebody-elses").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, facts.f_bfree * facts.f_frsize)


def started(data: Path, role: str) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("HANSA_")}
    environment |= {"HANSA_DATA": str(data), "HANSA_ROLE": role}
    command = [sys.executable, "-m", "hansa", "server"]
    return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=_SECONDS, check=False)


@needs_root
@pytest.mark.parametrize("role", ["manager", "hub"])
def test_it_names_the_folder_and_a_way_out(small_disk: Path, role: str) -> None:
    data = small_disk / "data"
    data.mkdir()
    fill(small_disk)
    ended = started(data, role)
    assert ended.returncode != 0
    assert "the disk is full" in ended.stderr, ended.stderr
    assert str(data) in ended.stderr
    assert "free some room" in ended.stderr
    assert "database.url" not in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_so_it_does_if_the_disk_fills_up_on_the_way(tmp_path: Path, code: int) -> None:
    with pytest.raises(data_folder.DiskFull, match=str(tmp_path)), data_folder.with_room(tmp_path):
        raise OSError(code, os.strerror(code))


def test_other_trouble_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), data_folder.with_room(tmp_path):
        raise PermissionError(errno.EACCES, "no")


def test_a_database_that_cannot_grow_says_so(tmp_path: Path) -> None:
    engine = make_engine(sqlite_url(tmp_path))
    sa.event.listen(engine, "connect", lambda raw, _: raw.execute("pragma max_page_count = 2"))
    try:
        with pytest.raises(DatabaseFull, match="the disk is full") as caught:
            schema.upgrade(engine)
    finally:
        engine.dispose()
    assert str(tmp_path) in caught.value.message
    assert "database.url" not in caught.value.hint


@needs_root
def test_nor_does_sqlite_s_own_talk_of_other_trouble_mislead(small_disk: Path) -> None:
    fill(small_disk)
    engine = make_engine(sqlite_url(small_disk))
    try:
        with pytest.raises(DatabaseFull):
            schema.upgrade(engine)
    finally:
        engine.dispose()
