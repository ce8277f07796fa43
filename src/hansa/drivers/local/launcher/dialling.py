"""How does the manager get a connection to a port inside a job? We connect there and hand over the socket."""

import contextlib
import errno
import os
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from . import network, protocol
from .job import Job

Report = Callable[[protocol.Message, list[int]], None]


@dataclass(frozen=True)
class _Dial:
    call: int
    connecting: socket.socket
    until: float


class Dials:
    """The connections under way; none of them may hold up the loop."""

    def __init__(self, events: selectors.BaseSelector, report: Report, *, root: bool) -> None:
        self._events = events
        self._report = report
        self._root = root
        self._open: dict[int, _Dial] = {}

    @property
    def due(self) -> float:
        return min((dial.until for dial in self._open.values()), default=float("inf"))

    def begin(self, message: protocol.Message, job: Job | None) -> None:
        call = message["call"]
        if job is None:
            self._refuse(call, "the job has ended")
            return
        try:
            inside = network.socket_inside(job.pid, root=self._root)
        except OSError as error:
            self._refuse(call, error.strerror or str(error))
            return
        dial = _Dial(call, inside, time.monotonic() + message["timeout"])
        outcome = inside.connect_ex(("127.0.0.1", message["port"]))
        if outcome == errno.EINPROGRESS:
            try:
                self._events.register(inside, selectors.EVENT_WRITE, lambda: self._settle(dial))
            except OSError as error:  # the kernel watches so many for one user, and jobs may be that user
                self._end(dial, error.errno or errno.ENOMEM)
            else:
                self._open[call] = dial
        else:
            self._end(dial, outcome)

    def tick(self) -> None:
        now = time.monotonic()
        for dial in [dial for dial in self._open.values() if dial.until <= now]:
            self._forget(dial)
            self._end(dial, errno.ETIMEDOUT)

    def _settle(self, dial: _Dial) -> None:
        self._forget(dial)
        self._end(dial, dial.connecting.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _forget(self, dial: _Dial) -> None:
        del self._open[dial.call]
        with contextlib.suppress(KeyError):
            self._events.unregister(dial.connecting)

    def _end(self, dial: _Dial, outcome: int) -> None:
        if outcome:
            dial.connecting.close()
            self._refuse(dial.call, os.strerror(outcome))
        else:
            self._report({"event": "dialled", "call": dial.call}, [dial.connecting.detach()])

    def _refuse(self, call: int, error: str) -> None:
        self._report({"event": "undialled", "call": call, "error": error}, [])
