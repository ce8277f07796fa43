"""What all tests share: the real parts' fixtures, which of them take long, and a closing word on what was left out.

`make test` is for everybody and stays within a quarter of an hour; tests marked `deep` (a kill at every write, hubs
under fire for minutes) run where CI or HANSA_TEST_DEPTH=full asks for all.
"""

import os

import pytest

from real import parts

# A real part whose fixtures many rooms use is listed here; one room's own stays in that room's conftest.
pytest_plugins = ("real.postgres", "real.manager", "real.hub")


_LEFT_OUT = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = any(not argument.startswith("-") for argument in config.invocation_params.args)
    if os.environ.get("CI") or os.environ.get("HANSA_TEST_DEPTH") == "full" or named:
        return  # whoever names a test wants it
    deep = [item for item in items if item.get_closest_marker("deep")]
    config.stash[_LEFT_OUT] = len(deep)
    items[:] = [item for item in items if not item.get_closest_marker("deep")]
    config.hook.pytest_deselected(items=deep)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = parts.missing.lines()
    if not lines:
        return
    terminalreporter.section("parts missing on this machine", sep="-")
    for line in lines:
        terminalreporter.write_line(line, yellow=True)
    if not parts.strict():
        terminalreporter.write_line("tests that need them were left out; HANSA_TEST_STRICT=1 makes that a failure")
