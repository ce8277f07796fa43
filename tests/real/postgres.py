"""A real PostgreSQL: one server for the session, a fresh database for each test that asks.

Use the fixture `postgres_database` (its `url` is for SQLAlchemy, its `conninfo` for psycopg), or
`postgres_server` to make several databases in one test. The server listens on a socket in a folder of its
own, so it needs no port and nobody else reaches it. It is stopped at the end of the session, also a failed
one, and by the kernel should the tests be killed.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from real import parts

START_SECONDS = 60.0
STOP_SECONDS = 15.0
USER = "hansa"

# Nothing here has to outlive a power cut, so nothing waits for the disk.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "listen_addresses": "",
    "max_connections": "100",
    "shared_buffers": "64MB",
    "timezone": "UTC",
}


@dataclass(frozen=True, slots=True)
class Database:
    """An empty database on the session's server."""

    name: str
    folder: Path  # of the server's socket

    @property
    def url(self) -> str:
        """For SQLAlchemy; the same driver serves its sync and its async engine."""
        return f"postgresql+psycopg://{USER}@/{self.name}?host={self.folder}"

    @property
    def conninfo(self) -> str:
        return f"host={self.folder} user={USER} dbname={self.name}"


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    folder: Path
    process: subprocess.Popen[str]

    @contextlib.contextmanager
    def database(self) -> Iterator[Database]:
        """A new database, dropped at the end whoever still holds a connection to it."""
        database = Database(f"test_{uuid.uuid4().hex}", self.folder)
        # template0, since nobody can be connected to it: copying another fails on a neighbour's visit.
        self._execute("create database {} template template0", database.name)
        try:
            yield database
        finally:
            self._execute("drop database if exists {} with (force)", database.name)

    def _execute(self, statement: str, name: str) -> None:
        with psycopg.connect(Database("postgres", self.folder).conninfo, autocommit=True, connect_timeout=10) as link:
            link.execute(sql.SQL(statement).format(sql.Identifier(name)))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    programs = parts.require("postgres").resolve().parent
    with contextlib.ExitStack() as undo:
        # Not pytest's own folder: the server's user could not enter it, and a socket's path has to be short.
        folder = Path(tempfile.mkdtemp(prefix="hansa-pg-", dir="/tmp"))
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        account = server_account()
        if account is not None:
            os.chown(folder, account.pw_uid, account.pw_gid)
        initialise(programs, folder, account)
        yield undo.enter_context(running_server(programs, folder, account))


@pytest.fixture
def postgres_database(postgres_server: Server) -> Iterator[Database]:
    with postgres_server.database() as database:
        yield database


def server_account() -> pwd.struct_passwd | None:
    """Whom to run as: PostgreSQL refuses root, so root lends the server an account that may do nothing."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise LookupError("PostgreSQL refuses to run as root, and there is no account `postgres` or `nobody`")


def initialise(programs: Path, folder: Path, account: pwd.struct_passwd | None) -> None:
    command = [
        str(programs / "initdb"),
        f"--pgdata={folder / 'data'}",
        f"--username={USER}",
        "--auth=trust",  # the folder is ours alone, and only through it is the server reached
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
    ]
    done = start(command, folder, account)
    try:
        words, _ = done.communicate(timeout=START_SECONDS)
    except BaseException:
        done.kill()
        done.wait()
        raise
    if done.returncode != 0:
        raise RuntimeError(f"initdb failed with {done.returncode}:\n{words}")


@contextlib.contextmanager
def running_server(programs: Path, folder: Path, account: pwd.struct_passwd | None) -> Iterator[Server]:
    settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
    command = [
        str(programs / "postgres"),
        "-D",
        str(folder / "data"),
        f"--unix_socket_directories={folder}",
        *settings,
    ]
    process = start([*tied_to_us(), *command], folder, account)
    words: deque[str] = deque(maxlen=200)
    settled = threading.Event()
    reader = threading.Thread(target=follow, args=(process, words, settled), name="postgres log", daemon=True)
    reader.start()
    try:
        if not settled.wait(START_SECONDS) or process.poll() is not None:
            raise RuntimeError("PostgreSQL did not start:\n" + "".join(words))
        yield Server(folder, process)
    finally:
        stop(process)
        reader.join(STOP_SECONDS)


def start(command: list[str], folder: Path, account: pwd.struct_passwd | None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=folder,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        start_new_session=True,  # Ctrl-C is for us; we then stop the server in order
    )


def tied_to_us() -> list[str]:
    """Words that make the kernel stop the server when the tests are killed and cannot do it themselves."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "INT", "--"] if setpriv else []


def follow(process: subprocess.Popen[str], words: deque[str], settled: threading.Event) -> None:
    """Keeps the server's last words, and tells when it is ready or gone."""
    assert process.stdout is not None
    with process.stdout as log:
        for line in log:
            words.append(line)
            if "ready to accept connections" in line:
                settled.set()
    settled.set()


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGINT)  # "fast": ends sessions, then the server
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)  # at once; its children follow, which SIGKILL would orphan
        process.wait(STOP_SECONDS)
