"""What a stranger's text does to the operator's screen: nothing. In a process of its own, for logs are set up once."""

import json
import subprocess
import sys

import pytest

HOSTILE = "/\x1b]0;owned\x07\x1b[2J\x9b1m/x\n2026-01-01T00:00:00Z [info] forged"
PROGRAM = """
import json, logging, sys
import structlog
from hansa.entrypoints.telemetry import set_up_logs
from hansa.settings import LogSettings

form, hostile = json.loads(sys.argv[1])
set_up_logs(LogSettings(form=form))
log = structlog.get_logger("hansa.http")
structlog.contextvars.bind_contextvars(client=hostile)
log.info("request", path=hostile, several=[hostile], error=ValueError(hostile))
log.info(hostile)
logging.getLogger("uvicorn.error").warning("refused %s", hostile, extra={"color_message": hostile})
logging.getLogger("urllib3.connectionpool").warning("Retrying after %s", hostile)
logging.getLogger("uvicorn.error").info("%s", hostile)
try:
    raise ValueError(hostile)
except ValueError:
    log.exception("broken")
    logging.getLogger("asyncio").exception("%s", hostile)
"""
FORKING = """
import asyncio
import hansa.drivers.s3
import grpc, grpc.aio
from concurrent import futures

async def call(port):
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        for _ in range(5):
            try:
                await channel.unary_unary("/no/such")(b"")
            except grpc.aio.AioRpcError as error:
                print(error.code())
            await (await asyncio.create_subprocess_exec("true", preexec_fn=int)).wait()

server = grpc.server(futures.ThreadPoolExecutor(1))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
asyncio.run(call(port))
server.stop(None).wait()
"""


def run(program: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", program, *words], check=True, capture_output=True, timeout=60)


def test_the_lines_of_libraries_are_events_like_ours() -> None:
    events = [json.loads(line) for line in run(PROGRAM, json.dumps(["json", HOSTILE])).stderr.decode().splitlines()]
    uvicorn_line, asyncio_line = (one for one in events if "logger" in one)
    assert (asyncio_line["logger"], asyncio_line["level"]) == ("asyncio", "error")
    assert "ValueError" in asyncio_line["exception"]
    assert (uvicorn_line["logger"], uvicorn_line["level"]) == ("uvicorn.error", "warning")
    assert uvicorn_line["event"] == f"refused {HOSTILE}"
    assert uvicorn_line["client"] == HOSTILE  # who is served while a library speaks
    assert all("timestamp" in one for one in events)


def test_the_core_of_grpc_writes_no_lines_of_its_own() -> None:
    ran = run(FORKING)
    assert ran.stdout.count(b"UNIMPLEMENTED") == 5
    assert ran.stderr == b""


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_control_character_is_written_to_the_log(form: str) -> None:
    written = run(PROGRAM, json.dumps([form, HOSTILE])).stderr.decode()
    assert "owned" in written
    assert not {one for one in written if not one.isprintable()} - {"\n"}
    before_the_traceback = written.split("Traceback")[0]
    assert not [line for line in before_the_traceback.splitlines() if line.startswith("2026-01-01T00:00:00Z")]
