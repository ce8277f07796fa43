"""How does a pod answer calls? One after the other: the input is brought, the script's container is told to go, and
what it printed or left is the answer.

The script's container waits at a pipe in a shared folder. Ending a script is not ours to do from here: a worker whose
script is not over in time says so, and is thrown away.
"""

import contextlib
import dataclasses
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec

from hansa.drivers.kubernetes.stager import calls, folders, paper, script_files
from hansa.drivers.kubernetes.stager.calls import Answer, Call
from hansa.drivers.runs import environment, removal, reply, words
from hansa.drivers.runs.stager.errors import Refused, Trouble
from hansa.drivers.runs.stager.plan import Plan
from hansa.kernel import errors

_LOOK_EVERY = 0.01
_LARGEST_CALL = 64 * 2**20


class Worker:
    def __init__(self) -> None:
        self._turn = threading.Lock()
        if not os.path.exists(calls.GO):
            os.mkfifo(calls.GO)

    def answer(self, call: Call) -> Answer:
        with self._turn:
            try:
                return self._answer(call)
            except (errors.HansaError, Refused, Trouble, OSError) as error:
                body = b""
                with contextlib.suppress(Refused):
                    body = _printed()
                return Answer(body=body, exit_code=None, reason=str(error), spoilt=True)

    def _answer(self, call: Call) -> Answer:
        end = time.monotonic() + call.seconds
        plan = Plan.from_json(call.plan.encode())
        _cleared()
        if call.input is not None:
            folders.write_input(call.input_name, call.input)
        if plan.brings:
            with folders.moving(plan, _unheard) as mover:
                plan = dataclasses.replace(plan, mounted=mover.bring())
        code = self._run(call, end)
        if code is None:
            return Answer(body=_printed(), exit_code=None, reason=words.time_limit(call.seconds), spoilt=True)
        if code != 0:
            return Answer(body=_printed(), exit_code=code, reason=words.exit_code(code))
        if plan.carries:
            with folders.moving(plan, _unheard) as mover:
                mover.carry()
        left = reply.of_files(folders.left(reply.MOST_NAMES))
        return Answer(body=_printed() if left is None else left, exit_code=0, reason="")

    def _run(self, call: Call, end: float) -> int | None:
        """The script's exit code, or None when its time is over."""
        script_files.write(calls.CALL, environment.call_file(call.variables)[1].encode())
        while not script_files.tell(calls.GO, b"go\n"):  # nobody reads yet
            if time.monotonic() > end:
                return None
            time.sleep(_LOOK_EVERY)
        while time.monotonic() < end:
            code = script_files.exit_code(calls.END)
            if code is not None:
                return code
            time.sleep(_LOOK_EVERY)
        return None


def _cleared() -> None:
    """Nothing of a former call is left where a script looks, or where its answer is looked for. Raises OSError if
    something is: another caller is about to come."""
    for said in (calls.CALL, calls.OUT, calls.END):  # not emptied: what a script left running may still print there
        _remove(Path(said))
    for path in folders.JOB.iterdir():
        if path.name == "output":
            for left in path.iterdir():
                _remove(left)
        else:
            _remove(path)
    if os.path.isdir(paper.MOUNT):
        for left in Path(paper.MOUNT).iterdir():
            _remove(left)
    (folders.JOB / "input").mkdir(exist_ok=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        removal.remove(path)
    else:
        path.unlink(missing_ok=True)


def _printed() -> bytes:
    return script_files.read(calls.OUT, reply.LARGEST) or b""


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
