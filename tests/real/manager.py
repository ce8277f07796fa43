"""A real manager for tests: the program `hansa server` in a process and a data folder of its own, on loopback.

`manager` is one for the whole session, with the users of `sign_in_provider`; make things with fresh names. A test
that needs other settings, or wants to kill it, asks for `start_manager` and gets managers of its own:

    def test_x(start_manager: StartManager) -> None:
        own = start_manager({"jobs.page_size": 2}, database=postgres_database.url)
        own.kill()
        own.restart()
"""

import contextlib
import fcntl
import itertools
import json
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

from real import nursery, parts
from real.identity_provider import AUDIENCE, USERS, IdentityProvider, identity_provider
from real.nursery import Child

START_SECONDS = 60.0
STOP_SECONDS = 20.0
ANSWER_SECONDS = 60.0
ADMIN = "admin"
ISSUER_GROUP = "vo-test"
_UID_SHELF = Path(tempfile.gettempdir()) / "hansa-test-uids"
_FIRST_UID, _UIDS_EACH = 500_000_000, 256

PEOPLE: Mapping[str, Mapping[str, Any]] = {
    **USERS,
    "dora": {"password": "dora-pw", "name": "Dora", "groups": [ISSUER_GROUP]},
    "quinn": {"password": "quinn-pw", "name": "Quinn", "groups": [ISSUER_GROUP]},
    "watcher": {"password": "watcher-pw", "name": "Watcher", "groups": [ISSUER_GROUP]},
}
ORDINARY_USER = 3_999_997  # of the machine, whom nobody else is; for managers that are not root's
WATCHER = "watcher@test"  # has the admin's view

# Far beyond what tests need, so that they do not stand in each other's way; quotas have managers of their own.
ROOMY: Mapping[str, Any] = {
    "jobs.cpu": "64",
    "jobs.memory": "64Gi",
    "quotas.cpu": "64",
    "quotas.memory": "64Gi",
    "quotas.ephemeral_storage": "1000Gi",
    "quotas.buckets": 1000,
    "quotas.volumes": 1000,
    "quotas.disk": "1000Gi",
    "http.wrong_passwords": 1_000_000,
}


@dataclass(slots=True)
class Manager:
    """One manager's data folder and, most of the time, its process."""

    folder: Path
    port: int
    settings: Mapping[str, Any]
    password: str = field(default_factory=lambda: secrets.token_urlsafe(12), repr=False)
    user: int | None = None  # whose program it is; ours unless given
    _process: subprocess.Popen[bytes] | Child | None = None
    _clients: dict[str, httpx.Client] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the manager does not run"
        return self._process.pid

    @property
    def log(self) -> str:
        """Everything the manager wrote to its standard streams, over all its starts."""
        return (self.folder / "manager.log").read_text(errors="replace")

    @property
    def admin(self) -> httpx.Client:
        return self._client("admin", auth=httpx.BasicAuth(ADMIN, self.password))

    @property
    def anonymous(self) -> httpx.Client:
        return self._client("anonymous")

    def bearer(self, token: str) -> httpx.Client:
        """Whoever holds this access token or service token."""
        return self._client(token, headers={"Authorization": f"Bearer {token}"})

    def _client(self, whose: str, **how: Any) -> httpx.Client:
        """Kept, and closed with the manager: a client costs more to make than a request."""
        if whose not in self._clients:
            self._clients[whose] = httpx.Client(base_url=self.url, timeout=ANSWER_SECONDS, trust_env=False, **how)
        return self._clients[whose]

    def close(self) -> None:
        self.kill()
        for client in self._clients.values():
            client.close()

    def start(self) -> None:
        """Returns when `/ready` says yes."""
        self._start(ready=True)

    def start_unready(self) -> None:
        """Returns when it answers: something keeps it from getting ready."""
        self._start(ready=False)

    def _start(self, *, ready: bool) -> None:
        assert self._process is None, "the manager runs already"
        variables = {name: value for name, value in os.environ.items() if not name.startswith("HANSA_")}
        environment = {**variables, **self._variables()}
        self._process = nursery.started(environment, self.folder, self.folder / "manager.log", user=self.user)
        try:
            self._await_ready(ready)
        except BaseException:
            self.kill()
            raise

    def _variables(self) -> dict[str, str]:
        given = {
            "data": str(self.data),
            "http.port": self.port,
            "admin.user": ADMIN,
            "admin.password": self.password,
            **self.settings,
        }
        return {
            "HANSA_" + name.upper().replace(".", "__"): value if isinstance(value, str) else json.dumps(value)
            for name, value in given.items()
        }

    def _await_ready(self, ready: bool = True) -> None:
        assert self._process is not None
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(httpx.TransportError):
                if self.anonymous.get("/ready").status_code == 200 or not ready:
                    return
            if self._process.poll() is not None:
                break
            time.sleep(0.03)
        store = self.data / "objects" / "weed.log"
        printed = store.read_text(errors="replace")[-4000:] if store.exists() else "nothing"
        raise RuntimeError(f"the manager did not become ready:\n{self.log[-4000:]}\nits store printed:\n{printed}")

    def kill(self) -> None:
        """SIGKILL, as a power cut would end it; killing what does not run is fine."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)
            self._process = None

    def stop(self) -> int:
        """SIGTERM and the exit code; stopping what does not run is fine."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise RuntimeError(f"the manager did not stop in {STOP_SECONDS} s:\n{self.log[-4000:]}") from None
        self._process = None
        return code

    def restart(self) -> None:
        """Stopped if it runs, then started on the same folder and port."""
        self.stop()
        self.start()


class StartManager(Protocol):
    """Starts a manager that ends with the test."""

    def __call__(self, settings: Mapping[str, Any] | None = None, *, database: str = "") -> Manager: ...


@contextlib.contextmanager
def running_manager(
    settings: Mapping[str, Any] | None = None, *, database: str = "", port: int = 0, user: int | None = None
) -> Iterator[Manager]:
    """A manager with these settings (dotted names) on top of roomy defaults; SQLite unless a database is given."""
    with contextlib.ExitStack() as undo:
        # Not pytest's own folder: jobs run as other users, who have to reach their part of it.
        folder = Path(tempfile.mkdtemp(prefix="hansa-manager-"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)
        given = {**ROOMY, "sandbox.uid_base": undo.enter_context(leased_uids()), **(settings or {})}
        if database:
            given["database.url"] = database
        manager = Manager(folder, port or free_port(), given, user=user)
        if user is not None:
            os.chown(folder, user, user)
        undo.callback(manager.close)
        manager.start()
        yield manager
        manager.stop()


@contextlib.contextmanager
def leased_uids() -> Iterator[int]:
    """The first of a range of user ids no other test on this machine uses now."""
    _UID_SHELF.mkdir(mode=0o777, exist_ok=True)
    for number in itertools.count():
        with (_UID_SHELF / str(number)).open("w") as lease:
            try:
                fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield _FIRST_UID + number * _UIDS_EACH
            return


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def trusting(provider: IdentityProvider) -> dict[str, Any]:
    """Settings that let the provider's users in."""
    return {
        "oidc.issuers": [{"url": provider.issuer(), "audience": AUDIENCE, "groups": [ISSUER_GROUP]}],
        "oidc.users_admin": [WATCHER],
    }


@pytest.fixture(scope="session")
def sign_in_provider() -> Iterator[IdentityProvider]:
    """Who the users of managers in tests are; those of `stranger` are nobody's."""
    parts.require("node")
    parts.require("npm")
    realms = {"test": {"access_ttl": 3600, "rotate": False}, "stranger": {}}
    with identity_provider(realms=realms, users=PEOPLE) as provider:
        yield provider


@pytest.fixture(scope="session")
def manager(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    """One for the session; its pages are short so that a handful of jobs fills several."""
    with running_manager({**trusting(sign_in_provider), "jobs.page_size": 3, "log.level": "debug"}) as running:
        yield running


@pytest.fixture
def start_manager() -> Iterator[StartManager]:
    with contextlib.ExitStack() as undo:

        def start(settings: Mapping[str, Any] | None = None, *, database: str = "") -> Manager:
            return undo.enter_context(running_manager(settings, database=database))

        yield start
