"""What a job sees, and what it does not."""

import json
import os
from pathlib import Path

import pytest

from hansa.drivers.local.sandbox import Bind

from .conftest import ORDINARY_USER, Bench, opened

pytestmark = pytest.mark.asyncio(loop_scope="package")

LOOK_AROUND = """
import errno, json, os, pwd
try: os.open("/dev/tty", os.O_RDWR); tty = "open"
except OSError as error: tty = errno.errorcode[error.errno]
print(json.dumps({"root": os.listdir("/"), "env": dict(os.environ), "uid": os.getuid(), "gid": os.getgid(),
  "fds": sorted(int(f) for f in range(64) if os.path.exists(f"/dev/fd/{f}")) if os.path.isdir("/proc/self") else [],
  "tty": tty, "user": pwd.getpwuid(os.getuid()).pw_name if os.path.exists("/job") else "", "cwd": os.getcwd()}))
"""


async def test_a_job_sees_only_what_is_its_own(bench: Bench) -> None:
    work = bench.directory("mine")
    text, exit = await bench.python(LOOK_AROUND, env={"GIVEN": "yes"}, workdir=work)
    if bench.sandbox.level.filesystem != "bwrap":
        assert exit.code != 0 or bench.name == "process", "landlock hides the directory /"
        return
    seen = json.loads(text)
    linked = {name[1:] for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32") if os.path.exists(name)}
    assert set(seen["root"]) == {"usr", "etc", "proc", "dev", "tmp", "job"} | linked
    assert set(seen["env"]) == {"GIVEN", "PATH", "HOME", "LANG", "PWD"}
    assert seen["env"]["GIVEN"] == "yes"
    if bench.sandbox.level.uid == "per-job":
        assert bench.uid_base <= seen["uid"] < bench.uid_base + 256
    else:
        assert seen["uid"] == ORDINARY_USER
    assert set(seen["fds"]) <= {0, 1, 2, 3}, "3 is the listing itself"
    assert seen["tty"] == "ENXIO"
    assert seen["user"] == "job"
    assert seen["cwd"] == "/job"


async def test_the_environment_is_only_what_was_given(bench: Bench) -> None:
    text, _ = await bench.run("env", env={"GIVEN": "yes"})
    names = {line.partition("=")[0] for line in text.splitlines()}
    assert names <= {"GIVEN", "PATH", "HOME", "LANG", "PWD", "TMPDIR"}
    assert "GIVEN" in names


async def test_the_launcher_knows_no_secret(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANAGER_SECRET", "never")
    async with opened("full", home) as bench:
        environment = Path(f"/proc/{bench.sandbox.launcher_pid}/environ").read_bytes()
        assert b"PATH=" in environment
        assert b"MANAGER_SECRET" not in environment
        text, _ = await bench.run("env")
        assert "MANAGER_SECRET" not in text


async def test_the_rest_of_the_machine_is_out_of_reach(bench: Bench) -> None:
    if bench.name == "process":
        pytest.skip("this level hides nothing")
    private = bench.directory("elsewhere")
    secret = private / "secret"
    secret.write_text("do not read")
    secret.chmod(0o644)
    text, exit = await bench.shell(
        f"cat {secret} && echo READ; cat /proc/{os.getpid()}/environ && echo READ; "
        "touch /usr/mark && echo WROTE; touch /etc/mark && echo WROTE; touch mark && echo mine"
    )
    assert exit.code == 0
    assert "READ" not in text
    assert "WROTE" not in text
    assert "mine" in text


async def test_common_tools_run(bench: Bench) -> None:
    text, exit = await bench.shell(
        "set -e; echo abc | sed s/b/X/; echo 1 2 | awk '{print $1+$2}'; echo data > f; tar czf f.tgz f; "
        "rm f; tar xzf f.tgz; gzip -t f.tgz; cat f; curl --version | head -c 4; echo; "
        "/usr/bin/python3 -c 'import ssl, json; print(6*7)'"
    )
    assert text.splitlines() == ["aXc", "3", "data", "curl", "42"]
    assert exit.code == 0


@pytest.mark.parametrize("name", ["full", "namespaces"])
async def test_a_workdir_below_a_closed_directory(name: str, home: Path) -> None:
    async with opened(name, home) as bench:
        closed = bench.directory("closed")
        work, shared, fixed = closed / "a" / "work", closed / "shared", closed / "fixed.txt"
        work.mkdir(parents=True)
        (work / "input").write_text("in")
        (work / "input").chmod(0o600)
        shared.mkdir(mode=0o777)
        shared.chmod(0o777)
        fixed.write_text("fixed")
        fixed.chmod(0o644)
        closed.chmod(0o700)
        binds = (Bind(shared, "/mnt/shared"), Bind(fixed, "/opt/fixed.txt", read_only=True))
        text, exit = await bench.shell(
            "cat input /opt/fixed.txt; echo out > output; echo new > /mnt/shared/new; echo x > /opt/fixed.txt",
            workdir=work,
            binds=binds,
        )
        assert text.startswith("infixed")
        assert exit.code != 0, "the last write went to a read-only bind"
        assert (work / "output").read_text() == "out\n"
        assert (shared / "new").read_text() == "new\n"
        assert fixed.read_text() == "fixed"


async def test_a_shared_group_owns_what_jobs_create(full: Bench) -> None:
    group = full.uid_base + 300
    volume = full.directory("volume")
    os.chown(volume, 0, group)
    volume.chmod(0o2770)
    bind = (Bind(volume, "/mnt/volume"),)
    await full.shell("echo first > /mnt/volume/file", binds=bind, group=group)
    text, exit = await full.shell("echo second >> /mnt/volume/file; cat /mnt/volume/file", binds=bind, group=group)
    assert (text, exit.code) == ("first\nsecond\n", 0)
    assert (volume / "file").stat().st_gid == group
    assert (volume / "file").stat().st_mode & 0o777 == 0o660
    text, exit = await full.shell("cat /mnt/volume/file", binds=bind)
    assert exit.code != 0, "another job is not of the group"


async def test_jobs_have_different_uids_and_no_common_tmp(full: Bench) -> None:
    first, _ = await full.shell("id -u; echo mine > /tmp/x; echo mine > /dev/shm/x")
    second, _ = await full.shell("id -u; ls /tmp /dev/shm")
    assert first.strip() != second.split()[0]
    assert second.split()[1:] == ["/dev/shm:", "/tmp:"]
