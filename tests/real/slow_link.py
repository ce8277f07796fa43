"""Carries Ethernet frames between two interfaces, each one late: `slow_link.py A B C SECONDS READY_FD NAMESPACE`.

Run in the namespace that has both interfaces; ends with its standard input. The kernel's own delay (netem) is not
always there, and this needs nothing but raw sockets. Checksums are filled in by hardware that does not exist here, so
that is switched off first: at both interfaces, at C beyond B, and at `eth0` of the namespace behind A.
"""

import array
import contextlib
import ctypes
import fcntl
import os
import select
import socket
import struct
import sys
import time
from collections import deque
from pathlib import Path

_ETHTOOL, _CLONE_NEWNET = 0x8946, 0x4000_0000
_SWITCHES = (0x17, 0x1F, 0x24, 0x2C)  # set tx checksums, tso, gso, gro
_ALL_FRAMES = 3
_BURST = 64


def switch_off_offloads(interface: str) -> None:
    with socket.socket() as any_socket:
        for switch in _SWITCHES:
            value = array.array("B", struct.pack("II", switch, 0))
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            with contextlib.suppress(OSError):  # not every kind of interface has every switch
                fcntl.ioctl(any_socket, _ETHTOOL, request)


def opened(interface: str) -> socket.socket:
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_FRAMES))
    link.bind((interface, 0))
    link.setblocking(False)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    return link


def carry(one: socket.socket, other: socket.socket, delay: float) -> None:
    late: deque[tuple[float, socket.socket, bytes]] = deque()
    while True:
        wait = max(0.0, late[0][0] - time.monotonic()) if late else 1.0
        ready, _, _ = select.select([one, other, sys.stdin], [], [], wait)
        if sys.stdin in ready:
            return
        for link in (one, other):
            target = other if link is one else one
            for _ in range(_BURST if link in ready else 0):
                try:
                    frame, source = link.recvfrom(1 << 16)
                except BlockingIOError:
                    break
                if source[2] != socket.PACKET_OUTGOING:
                    late.append((time.monotonic() + delay, target, frame))
        while late and late[0][0] <= time.monotonic():
            _, target, frame = late.popleft()
            with contextlib.suppress(OSError):  # the link is down or its queue full: a frame is lost, as on any link
                target.send(frame)


def main() -> None:
    first, second, beyond, seconds, ready, namespace = sys.argv[1:]
    for interface in (first, second, beyond):
        switch_off_offloads(interface)
    links = opened(first), opened(second)
    with Path("/proc/self/ns/net").open() as home, Path("/run/netns", namespace).open() as behind:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.setns(behind.fileno(), _CLONE_NEWNET)
        switch_off_offloads("eth0")
        libc.setns(home.fileno(), _CLONE_NEWNET)
    os.write(int(ready), b"!")
    os.close(int(ready))
    carry(*links, float(seconds))


if __name__ == "__main__":
    main()
