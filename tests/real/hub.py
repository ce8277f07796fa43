"""A real hub for tests: `hansa server` in the role of a hub, a process and a folder of its own, on loopback.

hub = start_hub()                       # one process on SQLite
one, two = start_hub(database=url), …   # several on PostgreSQL share `key_file`
hub.admin.get("/v1/clusters")
hub.token(); hub.kill(); hub.start(); hub.pause(); hub.go_on()
"""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest

from real import nursery
from real.nursery import Child

START_SECONDS = 60.0
STOP_SECONDS = 20.0
ADMIN = "admin"

# Quick to notice, so that tests do not wait long.
BRISK: Mapping[str, Any] = {
    "hub.heartbeat_every": 0.5,
    "hub.lease_seconds": 2.0,
    "hub.sync_every": 0.1,
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Hub:
    folder: Path
    settings: Mapping[str, Any]
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12), repr=False)
    port: int = field(default_factory=free_port)
    members_port: int = field(default_factory=free_port)
    host: str = "127.0.0.1"
    inside: tuple[str, ...] = ()  # words before its command: it may live in a network namespace
    door: str = ""  # where tests reach it then
    _process: subprocess.Popen[bytes] | Child | None = None
    _clients: dict[str, httpx.Client] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return self.door or f"http://{self.host}:{self.port}"

    @property
    def members_url(self) -> str:
        return f"https://{self.host}:{self.members_port}"

    @property
    def key_file(self) -> Path:
        return self.folder / "data" / "hub" / "hub.key"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the hub does not run"
        return self._process.pid

    @property
    def log(self) -> str:
        return (self.folder / "hub.log").read_text(errors="replace")

    @property
    def admin(self) -> httpx.Client:
        return self._client("admin", auth=httpx.BasicAuth(ADMIN, self.password))

    @property
    def anonymous(self) -> httpx.Client:
        return self._client("anonymous")

    def bearer(self, token: str) -> httpx.Client:
        return self._client(token, headers={"Authorization": f"Bearer {token}"})

    def _client(self, whose: str, **how: Any) -> httpx.Client:
        if whose not in self._clients:
            self._clients[whose] = httpx.Client(base_url=self.url, timeout=30, trust_env=False, **how)
        return self._clients[whose]

    def token(self, **asked: Any) -> str:
        answer = self.admin.post("/v1/cluster-tokens", json=asked)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    def cluster(self, name: str) -> dict[str, Any]:
        answer = self.admin.get(f"/v1/clusters/{name}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def state(self, name: str) -> str:
        answer = self.admin.get(f"/v1/clusters/{name}")
        return str(answer.json()["state"]) if answer.status_code == 200 else "none"

    def start(self) -> None:
        """Returns when `/ready` says yes."""
        assert self._process is None, "the hub runs already"
        self._process = nursery.started(self._environment(), self.folder, self.folder / "hub.log", self.inside)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise AssertionError(f"the hub ended with {self._process.returncode}:\n{self.log[-3000:]}")
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/ready", timeout=5, trust_env=False).status_code == 200:
                    return
            time.sleep(0.05)  # there is nothing to await: it is another program's port
        raise AssertionError(f"the hub is not ready after {START_SECONDS:g} s:\n{self.log[-3000:]}")

    def _environment(self) -> dict[str, str]:
        given = {
            "role": "hub",
            "data": str(self.folder / "data"),
            "admin.password": self.password,
            "hub.host": self.host,
            "hub.members_host": self.host,
            "hub.port": self.port,
            "hub.members_port": self.members_port,
            "log.form": "text",
            **self.settings,
        }
        env = {name: value for name, value in os.environ.items() if not name.startswith("HANSA_")}
        for name, value in given.items():
            env["HANSA_" + name.upper().replace(".", "__")] = str(value)
        return env

    def kill(self) -> None:
        """As a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
            self._process = None

    def stop(self) -> int:
        """As an operator would; the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(STOP_SECONDS)
        self._process = None
        return code

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        self.kill()
        for client in self._clients.values():
            client.close()


class StartHub(Protocol):
    def __call__(
        self, settings: Mapping[str, Any] | None = None, *, database: str = "", key_file: Path | None = None
    ) -> Hub: ...


@contextlib.contextmanager
def a_hub(
    settings: Mapping[str, Any] | None = None, *, database: str = "", key_file: Path | None = None
) -> Iterator[Hub]:
    folder = Path(tempfile.mkdtemp(prefix="hansa-hub-"))
    more: dict[str, Any] = {"database.url": database} if database else {}
    if key_file is not None:
        more["hub.key_file"] = key_file
    hub = Hub(folder, {**BRISK, **more, **(settings or {})})
    try:
        hub.start()
        yield hub
    finally:
        hub.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def start_hub() -> Iterator[StartHub]:
    """Starts hubs that end with the test."""
    with contextlib.ExitStack() as stack:

        def start(
            settings: Mapping[str, Any] | None = None, *, database: str = "", key_file: Path | None = None
        ) -> Hub:
            return stack.enter_context(a_hub(settings, database=database, key_file=key_file))

        yield start
