"""The limit of open files: raised as far as it goes without asking, and told in clusters."""

import subprocess
import sys

import pytest

from hansa.bootstrap import open_files

_PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (%d, %d))
from hansa.bootstrap import open_files
print(open_files.most(), open_files.allow_most(), resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(("soft", "hard"), [(100, 400), (400, 400)])
def test_all_that_may_be_had_is_taken(soft: int, hard: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM % (soft, hard)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == f"{hard} {hard} ({hard}, {hard})"


def test_two_connections_for_each_cluster() -> None:
    assert open_files.clusters_within(256 + 2 * 5000) == 5000
    assert open_files.clusters_within(100) == 0
