"""What may be promised of the disk: what is free and what images took already, but for the reserve."""

import os
from pathlib import Path

import pytest

from hansa.drivers.local.space import Space, per_run, shortage
from hansa.settings import BadSetting, JobSettings

GIB = 2**30


def free(folder: Path) -> int:
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def test_the_reserve_stays_free(tmp_path: Path) -> None:
    all_of_it = Space(tmp_path, JobSettings(disk_reserve="0")).room(None)
    kept = Space(tmp_path, JobSettings(disk_reserve="2Gi")).room(None)
    assert abs(all_of_it - kept - 2 * GIB) < GIB // 4  # others write meanwhile
    assert Space(tmp_path, JobSettings(disk_reserve="1000Ti")).room(None) == 0


def test_the_operators_limit(tmp_path: Path) -> None:
    space = Space(tmp_path / "not-there-yet", JobSettings(disk="100Mi", disk_reserve="1Mi"))
    assert (space.room(None), space.most) == (100 * 2**20, 100 * 2**20)


def test_what_a_volume_took_is_not_counted_twice(tmp_path: Path) -> None:
    """Its whole size is promised already."""
    space = Space(tmp_path, JobSettings(), lambda: 64 * 2**20)
    assert abs(space.room(None) - (free(tmp_path) - GIB) - 64 * 2**20) < 32 * 2**20


@pytest.mark.parametrize(
    ("most", "given"),
    [(100 * GIB, GIB), (2 * GIB, GIB), (GIB, GIB // 2), (0, 16 * 2**20)],  # on the last one runs wait, with a reason
)
def test_the_default_of_a_run_fits_on_a_small_disk(most: int, given: int) -> None:
    assert per_run(JobSettings(), most) == given


def test_what_the_operator_gives_a_run_is_given_or_refused() -> None:
    assert per_run(JobSettings(disk_per_run="2Gi"), 2 * GIB) == 2 * GIB
    with pytest.raises(BadSetting, match=r"jobs\.disk_per_run: 2Gi for each run, and the disk has 1Gi"):
        per_run(JobSettings(disk_per_run="2Gi"), GIB)


def test_a_disk_on_which_nothing_could_run_is_told() -> None:
    reserved = JobSettings(disk_reserve="1Gi")
    assert shortage(reserved, GIB) == ""
    words = "the disk has 8Mi for runs, too little for one of them; jobs.disk_reserve keeps 1Gi of it for the manager"
    assert shortage(reserved, 8 * 2**20) == words
