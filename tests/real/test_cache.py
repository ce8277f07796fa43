"""Is what was made once found again, is nothing half-made ever found, and does what nobody uses any more go?"""

import os
import time
from pathlib import Path

import pytest

from real import cache


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def write(folder: Path) -> None:
    (folder / "cargo").write_text("salt")


def fail(folder: Path) -> None:
    write(folder)
    raise RuntimeError("storm")


def test_what_was_made_is_found_and_not_made_again() -> None:
    assert (cache.made("hold-1", write) / "cargo").read_text() == "salt"
    assert cache.made("hold-1", fail) == cache.root() / "hold-1"


def test_what_failed_is_not_there_and_may_be_made_later() -> None:
    with pytest.raises(RuntimeError, match="storm"):
        cache.made("hold-1", fail)
    assert not list(cache.root().glob("*hold-1*"))
    assert cache.made("hold-1", write).is_dir()


def test_what_a_killed_run_left_half_made_does_not_hinder() -> None:
    (cache.root() / ".hold-1").mkdir(parents=True)
    (cache.root() / ".hold-1" / "cargo").write_text("wet")
    assert (cache.made("hold-1", write) / "cargo").read_text() == "salt"


def test_of_one_kind_only_the_latest_and_the_recently_used_are_kept() -> None:
    long_ago = time.time() - 86400
    for number in range(5):
        os.utime(cache.made(f"hold-{number}", write), (long_ago + number, long_ago + number))
        os.utime(cache.made(f"hold-fore-{number}", write), (long_ago, long_ago))
    cache.made("hold-0", write)
    cache.made("hold-5", write)
    assert sorted(path.name for path in cache.root().glob("hold-[0-9]")) == ["hold-0", "hold-4", "hold-5"]
    assert len(list(cache.root().glob("hold-fore-[0-9]"))) == 3
