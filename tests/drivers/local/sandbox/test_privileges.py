"""A job has no way to more rights than it was given."""

import json
import os

import pytest

from .conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="package")

TRY_DOORS = """
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(*arguments):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno(), "OK") if libc.syscall(*arguments) < 0 else "OK"
doors = {"unshare": attempt(272, 0x10000000), "mount": attempt(165, b"none", b"/tmp", b"tmpfs", 0, None),
         "setns": attempt(308, 0, 0), "bpf": attempt(321, 0, None, 0), "keyctl": attempt(250, 0, -3, 0),
         "io_uring": attempt(425, 1, None), "ptrace": attempt(101, 0, 0, 0, 0), "clone3": attempt(435, None, 0)}
pid = libc.syscall(56, 0x10000000 | 17, None, None, None, None)
if pid == 0: os._exit(0)
doors["clone"] = errno.errorcode.get(ctypes.get_errno(), "?") if pid < 0 else "OK"
try: os.kill(int(sys.argv[1]), 0); doors["kill"] = "OK"
except OSError as error: doors["kill"] = errno.errorcode[error.errno]
print(json.dumps(doors))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
async def test_dangerous_doors_are_shut(bench: Bench) -> None:
    text, _ = await bench.run("/usr/bin/python3", "-c", TRY_DOORS, str(os.getpid()))
    doors = json.loads(text)
    killed = doors.pop("kill")
    assert killed in ("ESRCH", "EPERM")
    assert doors.pop("clone3") == "ENOSYS"
    assert doors.pop("clone") in ("EPERM", "ENOSPC")
    assert set(doors.values()) == {"EPERM"}, doors


async def test_unshare_and_mount_are_refused(bench: Bench) -> None:
    text, exit = await bench.shell("unshare -Ur true && echo OPEN; mount -t tmpfs none . && echo OPEN; true")
    assert "OPEN" not in text
    assert exit.code == 0


async def test_no_capability_and_no_way_back(bench: Bench) -> None:
    text, _ = await bench.shell("cat /proc/self/status")
    if bench.sandbox.level.filesystem == "landlock":
        return  # it has no /proc at all
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == 0
    assert int(status["CapPrm"], 16) == 0
    if bench.sandbox.level.filesystem == "bwrap":
        assert int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
