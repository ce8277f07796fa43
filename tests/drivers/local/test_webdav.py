"""Do outputs reach a WebDAV server, with their folders, and are its refusals understood?

The server keeps files in a dict and is strict where real ones are: no PUT into a folder that does not exist, no
MKCOL below one.
"""

import base64
import contextlib
import http.server
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

import pytest

from contracts.orders import order
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.job_host import LocalJobHost
from hansa.drivers.local.job_logs import LogBook
from hansa.drivers.runs.stager.errors import Refused, Trouble
from hansa.drivers.runs.stager.plan import Store
from hansa.drivers.runs.stager.webdav import WebDav
from hansa.services import StorageIO

pytest_plugins = ("real.object_store",)

LOGIN = {"login": "ana", "password": "pass word"}
HEADER = "Basic " + base64.b64encode(b"ana:pass word").decode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folders: ClassVar[set[str]]
    files: ClassVar[dict[str, bytes]]

    def do_MKCOL(self) -> None:
        path = unquote(self.path).rstrip("/")
        if path in self.folders:
            self._answer(405)
        elif os.path.dirname(path).rstrip("/") not in self.folders:
            self._answer(409)
        else:
            self.folders.add(path)
            self._answer(201)

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        path = unquote(self.path)
        if os.path.dirname(path) not in self.folders:
            self._answer(409)
            return
        self.files[path] = content
        self._answer(201)

    def _answer(self, status: int) -> None:
        if self.headers["Authorization"] != HEADER:
            status = 401
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[http.server.ThreadingHTTPServer]:
    Handler.folders, Handler.files = {""}, {}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as opened:
        serving = threading.Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            yield opened
        finally:
            opened.shutdown()
            serving.join()


@pytest.fixture
def address(server: http.server.ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


async def test_a_job_stores_its_outputs_there(engine: Engine, home: Path, address: str) -> None:
    host = LocalJobHost(engine, LogBook(home / "logs", 2**20))
    job = order(
        'cd "$TMP_OUTPUT_DIR"; mkdir "a b"; echo 1 > one.txt; head -c 1000000 /dev/zero > "a b/zwö.bin"',
        output=(StorageIO(storage_provider="webdav.site", path="shared/results"),),
        storage_providers={"webdav": {"site": {"hostname": address, "login": "", "password": ""}}},
        providers={"webdav.site": {"hostname": address, **LOGIN}},
    )
    outcome = await host.run(job)
    assert outcome.succeeded, outcome.reason
    assert Handler.files == {
        "/shared/results/one.txt": b"1\n",
        "/shared/results/a b/zwö.bin": bytes(1_000_000),
    }


def test_wrong_keys_are_no_reason_to_try_again(address: str, tmp_path: Path) -> None:
    with _opened(address, "wrong") as dav, open(tmp_path / "x", "w+b") as file, pytest.raises(Refused):
        dav.upload("b", "k", file.fileno(), 0)


def test_a_server_that_is_away_is(tmp_path: Path) -> None:
    away = _opened("http://127.0.0.1:1", "pass word")
    with away as dav, open(tmp_path / "x", "w+b") as file, pytest.raises(Trouble):
        dav.upload("b", "k", file.fileno(), 0)


def test_only_so_many_folders_are_remembered(address: str, tmp_path: Path) -> None:
    """Their number is the script's to say; one that was forgotten is simply made again."""
    with _opened(address, "pass word", remembered=3) as dav, open(tmp_path / "x", "w+b") as file:
        for number in (*range(10), *range(10)):
            dav.upload("b", f"{number}/x", file.fileno(), 0)
            assert len(dav._made) <= 3
    assert set(Handler.files) == {f"/b/{number}/x" for number in range(10)}


@contextlib.contextmanager
def _opened(address: str, password: str, **more: int) -> Iterator[WebDav]:
    there = urlsplit(address)
    dav = WebDav(
        Store("webdav", address, access_key="ana", secret_key=password),
        lambda: socket.create_connection((there.hostname, there.port)),
        **more,
    )
    with contextlib.closing(dav):
        yield dav
