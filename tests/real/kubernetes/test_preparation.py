"""On a machine that cannot build a Kubernetes, is it said what is missing, and does the rest go on?"""

from pathlib import Path

import pytest

from real import go_programs
from real.kubernetes import preparation


@pytest.fixture
def without_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing was built before, either."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(go_programs, "_GO_FOLDER", str(tmp_path))


@pytest.mark.usefixtures("without_go")
def test_a_test_that_needs_one_is_told_why_there_is_none() -> None:
    assert "no program `go`" in preparation.hindrance(full=False)


@pytest.mark.usefixtures("without_go")
def test_setting_up_says_what_is_left_out_and_does_not_fail() -> None:
    said: list[str] = []
    assert preparation.prepare(said.append) is False
    assert len(said) == 1
    assert "are left out" in said[0]
    assert "no program `go`" in said[0]
