"""Does a connection that cannot be watched concern nobody but who asked for it?"""

import errno
import os
import selectors
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from hansa.drivers.local.launcher.dialling import Dials


class Full(selectors.DefaultSelector):
    """The kernel watches no more for this user."""

    def register(self, *_: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root enters the network of another process by itself")
def test_one_that_cannot_be_watched_is_refused() -> None:
    told: list[tuple[dict[str, Any], list[int]]] = []
    job: Any = SimpleNamespace(pid=os.getpid())
    with Full() as events, socket.create_server(("127.0.0.1", 0)) as listening:
        dials = Dials(events, lambda message, fds: told.append((message, fds)), root=True)
        port = listening.getsockname()[1]
        dials.begin({"call": 1, "id": "one", "port": port, "timeout": 5}, job)
        dials.tick()
    assert told == [({"event": "undialled", "call": 1, "error": os.strerror(errno.ENOSPC)}, [])]
    assert dials.due == float("inf")
