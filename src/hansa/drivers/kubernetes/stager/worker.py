"""How does a pod answer calls? One after the other: the input is brought, the script's container is told to go, and
what it printed or left is the answer.

The script's container waits at a pipe in a shared folder. Ending a script is not ours to do from here: a worker whose
script is not over in time says so, and is thrown away.
"""

import asyncio
import os
import shutil
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from hansa.drivers.kubernetes.stager import calls, program
from hansa.drivers.kubernetes.stager.calls import Answer, Call
from hansa.drivers.kubernetes.stager.paper import Paper
from hansa.drivers.runs import environment, reply, words
from hansa.drivers.runs.staging import Staging
from hansa.drivers.runs.stores import OrderStores
from hansa.kernel import errors

_LOOK_EVERY = 0.01
_LARGEST_CALL = 64 * 2**20


class Worker:
    def __init__(self, told: Paper) -> None:
        self._paper = told
        self._turn = threading.Lock()
        if not os.path.exists(calls.GO):
            os.mkfifo(calls.GO)

    def answer(self, call: Call) -> Answer:
        with self._turn:
            try:
                return asyncio.run(self._answer(call))
            except (errors.HansaError, OSError) as error:
                return Answer(body=_printed(), exit_code=None, reason=str(error), spoilt=True)

    async def _answer(self, call: Call) -> Answer:
        end = time.monotonic() + call.seconds
        order, own = self._paper.order(call.event), program.NoOwnStore()
        _cleared()
        async with OrderStores(own, program.open_store, order) as stores:
            staging = Staging(order, program.PodFolders(), stores, _unheard, self._paper.patience)
            await staging.bring()
            code = await self._run(call, end)
            if code is None:
                return Answer(body=_printed(), exit_code=None, reason=words.time_limit(call.seconds), spoilt=True)
            if code != 0:
                return Answer(body=_printed(), exit_code=code, reason=words.exit_code(code))
            await staging.carry()
        left = await asyncio.to_thread(reply.of_files, program.PodFolders.output, os.getuid())
        return Answer(body=_printed() if left is None else left, exit_code=0, reason="")

    async def _run(self, call: Call, end: float) -> int | None:
        """The script's exit code, or None when its time is over."""
        _lay_out(call)
        pipe = None
        while pipe is None:
            try:
                pipe = os.open(calls.GO, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:  # nobody reads yet
                if time.monotonic() > end:
                    return None
                await asyncio.sleep(_LOOK_EVERY)
        os.write(pipe, b"go\n")
        os.close(pipe)
        while time.monotonic() < end:
            said = program.text(calls.END)
            if said.endswith("\n"):
                return int(said)
            await asyncio.sleep(_LOOK_EVERY)
        return None


def _lay_out(call: Call) -> None:
    Path(calls.CALL).write_text(environment.call_file(call.variables)[1])
    Path(calls.OUT).write_bytes(b"")
    Path(calls.END).unlink(missing_ok=True)


def _cleared() -> None:
    """Nothing of a former call is left where a script looks."""
    for path in Path("/job").iterdir():
        if path.name == "output":
            for left in path.iterdir():
                _remove(left)
        else:
            _remove(path)
    program.PodFolders.input.mkdir(exist_ok=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _printed() -> bytes:
    try:
        with open(calls.OUT, "rb") as out:
            return out.read(reply.LARGEST)
    except FileNotFoundError:
        return b""


def _unheard(level: str, text: str) -> None:
    """A synchronous call has no log: what goes wrong is in its answer."""


def serve(worker: Worker, token: str, over: threading.Event) -> None:
    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(200, b"")

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if self.headers.get("Authorization") != f"Bearer {token}":
                self._say(403, b"")
                return
            if length > _LARGEST_CALL:
                self._say(413, b"")
                return
            call = msgspec.msgpack.decode(self.rfile.read(length), type=Call)
            self._say(200, msgspec.msgpack.encode(worker.answer(call)))

        def _say(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """The manager's log has it."""

    server = ThreadingHTTPServer(("", calls.PORT), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    over.wait()
    server.shutdown()
