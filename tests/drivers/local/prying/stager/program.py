"""What can a stager do that somebody took over? It tries everything and tells what worked."""

import ctypes
import encodings.idna  # noqa: F401 - or it would fail for want of it, and not because it is forbidden
import os
import signal
import socket
from collections.abc import Callable
from typing import Any


def prepare(*, verify: bool) -> None:
    """Nothing to load."""


def run(way: str, plan: bytes, channel: Any, job: int, mount: int) -> dict[str, Any]:
    outside: dict[str, Any] = __import__("json").loads(plan)["mounted"]
    tries: dict[str, Callable[[], object]] = {
        "read /etc/passwd": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "read a secret of the manager": lambda: os.open(_name(outside, "secret"), os.O_RDONLY),
        "list the data folder": lambda: os.listdir(_name(outside, "data")),
        "leave by the handle": lambda: os.open("../x", os.O_RDONLY, dir_fd=job),
        "write beside the folder": lambda: os.open("../new", os.O_WRONLY | os.O_CREAT, dir_fd=job),
        "read the launcher's memory": lambda: os.open(f"/proc/{os.getppid()}/mem", os.O_RDONLY),
        "read the launcher's environment": lambda: os.open(f"/proc/{os.getppid()}/environ", os.O_RDONLY),
        "signal the launcher": lambda: os.kill(os.getppid(), 0),
        "signal the manager": lambda: os.kill(int(_name(outside, "pid")), signal.SIGCONT),
        "reach a port of this machine": lambda: socket.create_connection(("127.0.0.1", int(_name(outside, "port"))), 1),
        "resolve a name": lambda: socket.getaddrinfo("localhost.example", 80),
        "send a datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)),
        "become root": lambda: os.setuid(0),
        "make a user namespace": _own_namespace,
        "run a program": lambda: os.execv("/bin/sh", ["sh", "-c", "true"]),
    }
    worked = []
    for what, attempt in tries.items():
        try:
            attempt()
            worked.append(what)
        except Exception:  # whatever stops it, it is stopped
            continue
    with open(os.open("output/mine", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=job), "w") as file:
        file.write("mine")
    return {"mounted": {}, "worked": worked, "uid": os.getuid()}


def _name(outside: dict[str, Any], key: str) -> str:
    """The plan carries them as names of files in a mounted folder."""
    return str(next(name for name in outside if name.startswith(f"{key}:"))).partition(":")[2]


def _own_namespace() -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
