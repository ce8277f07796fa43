"""What a stranger's text does to the operator's screen: nothing. In a process of its own, for logs are set up once."""

import json
import subprocess
import sys

import pytest

HOSTILE = "/\x1b]0;owned\x07\x1b[2J\x9b1m/x\n2026-01-01T00:00:00Z [info] forged"
PROGRAM = """
import json, sys
import structlog
from hansa.entrypoints.telemetry import set_up_logs
from hansa.settings import LogSettings

form, hostile = json.loads(sys.argv[1])
set_up_logs(LogSettings(form=form))
log = structlog.get_logger("hansa.http")
structlog.contextvars.bind_contextvars(client=hostile)
log.info("request", path=hostile, several=[hostile], error=ValueError(hostile))
log.info(hostile)
try:
    raise ValueError(hostile)
except ValueError:
    log.exception("broken")
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_control_character_is_written_to_the_log(form: str) -> None:
    told = [sys.executable, "-c", PROGRAM, json.dumps([form, HOSTILE])]
    written = subprocess.run(told, check=True, capture_output=True, timeout=60).stderr.decode()
    assert "owned" in written
    assert not {one for one in written if not one.isprintable()} - {"\n"}
    before_the_traceback = written.split("Traceback")[0]
    assert not [line for line in before_the_traceback.splitlines() if line.startswith("2026-01-01T00:00:00Z")]
