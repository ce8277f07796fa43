"""A real MinIO for tests, where one was built: `HANSA_SETUP_MINIO=yes make test` builds it, once.

`minio_server` is one for the session, `minio_store` the same opened with the administrator's keys. What restarts it, or
changes what everybody sees, starts one of its own with `running_minio`.
"""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from hansa.drivers.s3 import OpenStore, open_minio
from hansa.storage import Keys, StoreAddress
from real import parts
from real.minio import building

START_SECONDS = 30.0
STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RunningMinio:
    address: StoreAddress
    keys: Keys


@pytest.fixture(scope="session")
def minio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMinio]:
    with running_minio(tmp_path_factory.mktemp("minio")) as running:
        yield running


@contextlib.contextmanager
def running_minio(folder: Path) -> Iterator[RunningMinio]:
    binary = building.found()
    if binary is None:
        parts.give_up("minio", building.hindrance())
    keys = Keys("hansa-root", secrets.token_urlsafe(24))
    port = _free_port()
    address = StoreAddress(f"http://127.0.0.1:{port}", "us-east-1", verify=True)
    environment = {
        "PATH": os.defpath,
        "HOME": str(folder),
        "MINIO_ROOT_USER": keys.access_key,
        "MINIO_ROOT_PASSWORD": keys.secret_key,
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }
    command = [str(binary), "server", "--address", f"127.0.0.1:{port}", str(folder / "data")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        _await_health(process, address.endpoint, folder / "log")
        yield RunningMinio(address, keys)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_SECONDS)


@pytest.fixture
async def minio_store(minio_server: RunningMinio) -> AsyncIterator[OpenStore]:
    opened = open_minio(minio_server.address, minio_server.keys)
    yield opened
    await opened.close()


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_health(process: "subprocess.Popen[bytes]", endpoint: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    with httpx.Client(trust_env=False, timeout=2.0) as http:
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if http.get(f"{endpoint}/minio/health/ready").status_code == 200:
                    return
            time.sleep(0.05)
    raise RuntimeError(f"MinIO did not start:\n{log.read_text(errors='replace')[-2000:]}")
