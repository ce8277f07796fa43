"""Which kinds of sockets can a job open? Those that ordinary programs need, whatever its network is."""

import json
import os
import signal
import socket

import pytest

from .conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="package")

KEPT = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6}
ROUTE = 0
TRY_FAMILIES = """
import errno, json, socket
def opened(make, *arguments):
    try:
        for one in (lambda made: made if isinstance(made, tuple) else (made,))(make(*arguments)): one.close()
        return "OK"
    except OSError as error: return errno.errorcode[error.errno]
kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)
tries = {f"{family}": {opened(socket.socket, family, kind) for kind in kinds} for family in range(1, 64)}
pairs = {f"{family}": {opened(socket.socketpair, family, kind) for kind in kinds} for family in range(1, 64)}
netlink = {f"{protocol}": {opened(socket.socket, 16, socket.SOCK_RAW, protocol)} for protocol in range(32)}
print(json.dumps([{name: sorted(said) for name, said in all.items()} for all in (tries, pairs, netlink)]))
"""
ORDINARY = """
import asyncio, socket
print(socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)[0][4], [name for _, name in socket.if_nameindex()])
left, right = socket.socketpair(); left.send(b"pair"); print(right.recv(4))
asyncio.run(asyncio.sleep(0)); socket.create_server(("127.0.0.1", 0)).close(); print("ordinary")
"""
# mov eax, 102 (socketcall); mov ebx, 1; xor ecx, ecx; int 0x80; ret
OTHER_WAY = """
import ctypes, mmap
code = bytes.fromhex("b866000000bb0100000031c9cd80c3")
page = mmap.mmap(-1, len(code), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC); page.write(code)
print("CALLED", ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))(), flush=True)
"""


@pytest.mark.parametrize("network", ["none", "host"])
async def test_only_ordinary_families_open(bench: Bench, network: str) -> None:
    text, _ = await bench.run("/usr/bin/python3", "-c", TRY_FAMILIES, network=network)
    tries, pairs, netlink = json.loads(text)
    kept = {str(int(family)) for family in KEPT}
    for family in (str(int(socket.AF_UNIX)), str(int(socket.AF_INET))):
        assert "OK" in tries.pop(family)
    assert "OK" in pairs.pop(str(int(socket.AF_UNIX)))
    assert "OK" in tries.pop(str(int(socket.AF_NETLINK)))
    assert "OK" not in pairs.pop(str(int(socket.AF_NETLINK)))
    for found in (tries, pairs):
        others = {family: said for family, said in found.items() if family not in kept}
        assert set(map(tuple, others.values())) == {("EAFNOSUPPORT",)}, others
    assert netlink.pop(str(ROUTE)) == ["OK"]
    assert set(map(tuple, netlink.values())) == {("EPROTONOSUPPORT",)}, netlink


async def test_ordinary_programs_find_what_they_need(bench: Bench) -> None:
    text, exit = await bench.run("/usr/bin/python3", "-c", ORDINARY, network="host")
    assert ("ordinary" in text, exit.code) == (True, 0), text


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the bytes are those of x86_64")
async def test_calls_of_32_bit_programs_are_no_other_way(bench: Bench) -> None:
    text, exit = await bench.run("/usr/bin/python3", "-c", OTHER_WAY)
    assert "CALLED" not in text
    assert exit.code in (-signal.SIGSYS, 128 + signal.SIGSYS), exit
