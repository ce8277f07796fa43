"""What all tests share: the real parts' fixtures, and a closing word on the parts that were missing."""

import pytest

from real import parts

# A real part whose fixtures many rooms use is listed here; one room's own stays in that room's conftest.
pytest_plugins = ("real.postgres", "real.manager", "real.hub")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = parts.missing.lines()
    if not lines:
        return
    terminalreporter.section("parts missing on this machine", sep="-")
    for line in lines:
        terminalreporter.write_line(line, yellow=True)
    if not parts.strict():
        terminalreporter.write_line("tests that need them were left out; HANSA_TEST_STRICT=1 makes that a failure")
