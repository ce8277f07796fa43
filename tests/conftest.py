"""What all tests share: the real parts' fixtures, which of them take long, and a closing word on what was left out.

`make test` is for everybody and stays within a quarter of an hour; tests marked `deep` (a kill at every write, hubs
under fire for minutes) run where CI or HANSA_TEST_DEPTH=full asks for all.
"""

import os
from pathlib import Path

import hypothesis
import pytest

from real import parts

# A real part whose fixtures many rooms use is listed here; one room's own stays in that room's conftest.
pytest_plugins = (
    *("real.postgres", "real.nursery", "real.manager", "real.hub", "real.kubernetes.fixtures"),
    *("real.object_store", "real.minio"),  # before any conftest imports them, or those who name them as plugins fail
)

# How fast examples come says something of the machine, not of the code.
hypothesis.settings.register_profile("hansa", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("hansa")


def _deep(config: pytest.Config) -> bool:
    """Whoever names a test wants it."""
    named = [Path(one).name for one in config.args] != ["tests"]
    return named or bool(os.environ.get("CI")) or os.environ.get("HANSA_TEST_DEPTH") == "full"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not _deep(config):
        items[:] = [item for item in items if not item.get_closest_marker("deep")]
    # Files are given out in this order: the long ones first, so that no worker is left alone with one at the end.
    items.sort(key=lambda item: not _takes_long(item.path))


def _takes_long(file: Path) -> bool:
    return not {"journeys", "docs", "kubernetes"}.isdisjoint(file.parts) or file.name.startswith("test_playground")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _deep(terminalreporter.config):
        terminalreporter.write_line("tests marked deep were left out; HANSA_TEST_DEPTH=full runs them too")
    lines = parts.missing.lines()
    if not lines:
        return
    terminalreporter.section("parts missing on this machine", sep="-")
    for line in lines:
        terminalreporter.write_line(line, yellow=True)
    if not parts.strict():
        terminalreporter.write_line("tests that need them were left out; HANSA_TEST_STRICT=1 makes that a failure")
