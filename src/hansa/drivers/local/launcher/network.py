"""What network does a job see, and how does the manager reach a port inside it?

A job's network namespace has a loopback of its own and nothing else. A socket stays in the namespace in which
it was made, so reaching a job means: make a socket in there, and connect it from here.
"""

import contextlib
import fcntl
import os
import socket
import struct

from . import linux, protocol

_SIOCSIFFLAGS, _IFF_UP_RUNNING = 0x8914, 0x41
_HELPER_SECONDS = 1.0


def isolate(*, root: bool, any_port: bool) -> None:
    """Give this process (a job to be) an empty network of its own, with loopback."""
    if root:
        linux.unshare(linux.CLONE_NEWNET)
    else:
        enter_own_user_namespace()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP_RUNNING))
    if any_port:
        # a web server may want port 80, and the job has no capabilities. Where a container shows us /proc/sys
        # read-only, ports above 1023 must do
        with contextlib.suppress(OSError), open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w") as setting:
            setting.write("0")


def enter_own_user_namespace(more: int = 0) -> None:
    """Not root: only the owner of a user namespace may set up the network in it, and whatever else is asked for."""
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET | more)
    for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{file}", "w") as setting:
            setting.write(text)


def socket_inside(pid: int, *, root: bool) -> socket.socket:
    """A non-blocking TCP socket that lives in the network namespace of that process."""
    return _as_root(pid) if root else _through_helper(pid)


def _as_root(pid: int) -> socket.socket:
    home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            linux.enter_namespace(there, linux.CLONE_NEWNET)
            try:
                return _fresh_socket()
            finally:
                linux.enter_namespace(home, linux.CLONE_NEWNET)
        finally:
            os.close(there)
    finally:
        os.close(home)


def _through_helper(pid: int) -> socket.socket:
    """Not root: the way into a user namespace is one-way, so a short-lived process goes and hands back."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        if os.fork() == 0:
            try:
                for kind, flag in (("user", linux.CLONE_NEWUSER), ("net", linux.CLONE_NEWNET)):
                    linux.enter_namespace(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY), flag)
                made = _fresh_socket()
                protocol.send(theirs, b"{}", [made.fileno()])
            finally:
                os._exit(0)
        theirs.close()
        ours.settimeout(_HELPER_SECONDS)
        _, fds = protocol.receive(ours)
    if not fds:
        raise ProcessLookupError("the network of the job cannot be entered")
    made = socket.socket(fileno=fds[0])
    made.setblocking(False)
    return made


def _fresh_socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setblocking(False)
    return made
