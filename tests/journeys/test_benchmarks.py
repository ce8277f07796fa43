"""Does `python -m bench` still run and say what it promises? Figures of so small a run mean nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from real import parts
from real.kubernetes import fixtures

ROOT = Path(__file__).parents[2]


def bench(*words: str) -> str:
    command = [sys.executable, "-m", "bench", "--size", "tiny", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=220, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.deep
@pytest.mark.timeout(240)
def test_a_standby_that_takes_over_is_measured() -> None:
    parts.require("bubblewrap")
    said = bench("--only", "standby")
    for promised in ("lost, a file every 1 s", "until a write is taken again", "until the manager has reported"):
        assert promised in said


@pytest.mark.deep
@pytest.mark.timeout(240)
def test_jobs_in_kubernetes_are_measured() -> None:
    fixtures.require(full=True)
    said = bench("--only", "kubernetes")
    for promised in (
        "one job, against a plain Job",
        "3 jobs at once, against plain Jobs",
        "calls to the API server for a job",
        "memory with 60 ended jobs",
        "a page of 50 jobs",
    ):
        assert promised in said


@pytest.mark.deep
@pytest.mark.timeout(240)
def test_every_other_suite_reports_its_figures(tmp_path: Path) -> None:
    parts.require("bubblewrap")
    page = tmp_path / "benchmarks.md"
    said = bench("--without", "standby", "--without", "kubernetes", "--write", str(page))
    for promised in (
        "load average",
        "one service, against a no-op",
        "jobs accepted",
        "accepted to running",
        "upload to",
        "16 members, against one",
        "one hung, against none",
        "delegated job, above a local job",
        "join of 5 clusters",
        "heartbeats of 20 clusters every 0.5 s",
        "processor time for each cluster, 20 against 5",
        "reads of 50 clients meanwhile",
        "memory for each cluster",
    ):
        assert promised in said
    written = page.read_text()
    assert written.startswith("# Benchmarks\n")
    rows = [line for line in written.splitlines() if line.startswith("|") and not line.startswith(("| what", "|--"))]
    assert len(rows) >= 9
    assert all(row.count("|") == 6 for row in rows)
