"""How do all workers of a test run use one cluster, when none of them knows who comes first and who leaves last?

A keeper, a process of its own (`main` below), has the cluster and a socket. A worker connects, is told where the
cluster is, and stays connected for as long as it uses it; the kernel ends the connection of one that is killed. When
the last has left, the keeper stops the cluster and ends, and lets go of that last worker only then: a run ends with
nothing left. The socket's name is abstract and exclusive: of two keepers started at once, one finds it taken and ends.
"""

import contextlib
import dataclasses
import errno
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from real.kubernetes.access import Access
from real.kubernetes.cluster import full_cluster

_TESTS = Path(__file__).parents[2]
_START_SECONDS = 170.0  # a test's limit is 180
_STOP_SECONDS = 60.0
_KEEPER_SECONDS = 30.0  # until it listens
_FIRST_GUEST_SECONDS = 30.0
_PAUSE = 0.05


@contextlib.contextmanager
def joined(run: str) -> Iterator[Access]:
    """The cluster of that test run, started if nobody did."""
    connection, access = _joined(run)
    with connection:
        try:
            yield access
        finally:
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(_STOP_SECONDS)
            with contextlib.suppress(ConnectionError):
                connection.recv(1)  # its end: others still use the cluster, or nothing of it is left


def _joined(run: str) -> tuple[socket.socket, Access]:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        connection = _connected(run)
        if connection is None:
            _start_keeper(run)
            connection = _connected(run, _KEEPER_SECONDS)
        if connection is None:
            continue
        told = _heard(connection, deadline - time.monotonic())
        if told:
            return connection, told
        connection.close()  # it was about to leave; another one will come
    raise RuntimeError(f"no shared cluster within {_START_SECONDS:.0f} s")


def _connected(run: str, seconds: float = 0) -> socket.socket | None:
    """None if there was no keeper for so long."""
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.ExitStack() as undo:
            connection = undo.enter_context(socket.socket(socket.AF_UNIX))
            with contextlib.suppress(ConnectionRefusedError):
                connection.connect(_name(run))
                undo.pop_all()
                return connection
        if time.monotonic() >= deadline:
            return None
        time.sleep(_PAUSE)


def _heard(connection: socket.socket, seconds: float) -> Access | None:
    connection.settimeout(seconds)
    whole = b""
    with contextlib.suppress(ConnectionError):
        while not whole.endswith(b"\n") and (part := connection.recv(65536)):
            whole += part
    if not whole.endswith(b"\n"):
        return None
    told = json.loads(whole)
    if "trouble" in told:
        connection.close()
        raise RuntimeError(f"the shared cluster did not start:\n{told['trouble']}")
    return Access(told["server"], Path(told["kubeconfig"]), told["node"], told["first"])


def _start_keeper(run: str) -> None:
    # Not our child: it may outlive us, for another worker.
    subprocess.run(
        ["setsid", "--fork", sys.executable, "-m", "real.kubernetes.shared", run],
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_STOP_SECONDS,
        check=True,
    )


def _name(run: str) -> str:
    return f"\0hansa-kubernetes-run-{run}"


# What follows is the keeper's own process.


def main(run: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that all is undone on the way out
    door = socket.socket(socket.AF_UNIX)
    try:
        door.bind(_name(run))
    except OSError as error:
        door.close()
        if error.errno == errno.EADDRINUSE:
            return
        raise
    door.listen(64)
    with contextlib.ExitStack() as last, door:
        try:
            with full_cluster() as cluster:
                told = {**dataclasses.asdict(cluster.access), "kubeconfig": str(cluster.access.kubeconfig)}
                guest = _keep(door, json.dumps(told).encode() + b"\n")
                if guest is not None:
                    last.enter_context(guest)  # let go of when the cluster is gone
        except Exception:
            _refuse(door, json.dumps({"trouble": traceback.format_exc()}).encode() + b"\n")


def _keep(door: socket.socket, told: bytes) -> socket.socket | None:
    """Tells everybody who comes; ends when the last one leaves, and gives that one's connection."""
    guests: set[socket.socket] = set()
    with selectors.DefaultSelector() as watch:
        watch.register(door, selectors.EVENT_READ)
        while ready := watch.select(None if guests else _FIRST_GUEST_SECONDS):
            for key, _ in sorted(ready, key=lambda one: one[0].fileobj is not door):  # who comes, before who leaves
                if key.fileobj is door:
                    guest, _ = door.accept()
                    guests.add(guest)
                    watch.register(guest, selectors.EVENT_READ)
                    with contextlib.suppress(ConnectionError):
                        guest.sendall(told)
                    continue
                (leaving,) = (guest for guest in guests if guest is key.fileobj)
                watch.unregister(leaving)
                guests.remove(leaving)
                if not guests:
                    door.close()
                    return leaving
                leaving.close()
    return None


def _refuse(door: socket.socket, told: bytes) -> None:
    """Those who wait; whoever comes later starts another keeper."""
    door.settimeout(0)
    with contextlib.suppress(OSError):
        while True:
            guest, _ = door.accept()
            with guest, contextlib.suppress(ConnectionError):
                guest.sendall(told)


if __name__ == "__main__":
    main(sys.argv[1])
