"""Is a job that could not begin forgotten as a whole?"""

import errno
import os
import selectors
import socket
from types import SimpleNamespace
from typing import Any

from hansa.drivers.local.launcher import protocol
from hansa.drivers.local.launcher.main import Launcher


class Full(selectors.DefaultSelector):
    """The kernel watches no more for this user."""

    def register(self, *_: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_one_whose_beginning_cannot_be_watched_is_refused_and_leaves_nothing() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    discarded: list[str] = []
    setting: Any = SimpleNamespace(root=True)
    with ours, theirs, Full() as events, open(os.devnull, "wb") as output:
        launcher = Launcher(theirs, setting, None, range(1, 2), jobs=False)
        launcher._events = events
        for name in ("one", "two"):  # there is one uid: the second would not get it if the first had kept it
            order = protocol.Order(*(name, ["true"], {}, "/", 100, 2**20, 60.0, 8, "none", []), group=None, hold=True)
            spare: Any = SimpleNamespace(
                group=object(), pid=2**30, employ=lambda *_: None, discard=lambda name=name: discarded.append(name)
            )
            launcher._spare = spare
            before = os.listdir("/proc/self/fd")
            launcher._obey({"op": "start", "order": protocol.fields(order)}, [output.fileno()])
            assert set(os.listdir("/proc/self/fd")) <= set(before)
            told, _ = protocol.receive(ours)
            assert told is not None
            assert (told["event"], told["id"]) == ("failed", name)
            assert os.strerror(errno.ENOSPC) in told["error"]
        assert discarded == ["one", "two"]
        assert launcher._jobs == {}
