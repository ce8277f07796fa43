"""Does the engine do the same with real images?

`HANSA_SETUP_PODMAN=yes make test` brings what these tests need; without root they are left out.
"""

import asyncio
import os
import secrets
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from contracts import sync_host as sync_contract
from contracts.exposed_host import ask, until_state
from contracts.job_host import JobHostContract
from contracts.orders import MIB, order
from contracts.sync_host import SyncHostContract
from hansa import resources
from hansa.drivers import egress
from hansa.drivers.local import images
from hansa.drivers.local.disks import Disks, trouble
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.exposed_host import LocalExposedHost
from hansa.drivers.local.instance import Pace
from hansa.drivers.local.job_host import LocalJobHost
from hansa.drivers.local.job_logs import LogBook
from hansa.drivers.local.podman import PodmanRuntime
from hansa.drivers.local.sync_host import LocalSyncHost
from hansa.services import JobHost
from hansa.services.service import Expose
from real import parts

pytest_plugins = ("real.object_store",)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="podman is root's here")]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A small image made of busybox; it is the one `orders.order` names."""
    parts.require("runc")
    podman, busybox = parts.require("podman"), parts.require("busybox")
    tree = tmp_path_factory.mktemp("image")
    for folder in ("bin", "tmp", "etc", "job"):
        (tree / folder).mkdir()
    shutil.copy(busybox, tree / "bin" / "busybox")
    subprocess.run([busybox, "--install", "-s", str(tree / "bin")], check=True, timeout=20)
    for link in (tree / "bin").iterdir():
        if link.is_symlink():
            link.unlink()
            link.symlink_to("busybox")
    packed = subprocess.run(["tar", "-C", str(tree), "-c", "."], check=True, capture_output=True, timeout=20)
    name = "localhost/tool:1"
    subprocess.run([podman, "import", "-", name], input=packed.stdout, check=True, timeout=60, capture_output=True)
    yield name
    subprocess.run([podman, "rmi", "--force", name], check=False, timeout=60, capture_output=True)


@pytest.fixture
async def runtime(home: Path, uid_base: int, image: str) -> AsyncIterator[PodmanRuntime]:
    door = egress.Door(egress.Rule())
    opened = await PodmanRuntime.open(
        instance=f"t-{secrets.token_hex(4)}", uid_base=uid_base, run_dir=home / "podman", way_out=egress.Proxy(door)
    )
    yield opened
    await opened.close()
    await door.close()


@pytest.fixture
def disks(home: Path) -> Iterator[Disks]:
    """Containers bind folders that everybody sees, so their disks are mounted where everybody sees them."""
    opened = Disks.open(home / "work", hard=not trouble(), size=images.SMALLEST, placed=True)
    yield opened
    opened.close()


class TestJobs(JobHostContract):
    @pytest.fixture
    def logs(self, home: Path) -> LogBook:
        return LogBook(home / "logs", limit=64 * 1024)

    @pytest.fixture
    def host(self, engine: Engine, logs: LogBook) -> LocalJobHost:
        return LocalJobHost(engine, logs)

    async def test_time_and_memory_are_bounded(self, host: JobHost) -> None:
        """Podman does not tell everywhere that memory ran out; the code, and a word on it, must do."""
        slow = await host.run(order("sleep 60", seconds=1))
        assert (slow.succeeded, slow.reason) == (False, "time limit of 1 s reached")
        greedy = await host.run(order("head -c 300m /dev/zero | tail > /dev/null", memory=32 * MIB))
        assert not greedy.succeeded
        assert "memory" in greedy.reason


class TestCalls(SyncHostContract):
    @pytest.fixture(autouse=True)
    def with_time_for_a_container(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sync_contract, "SHORT", 5.0)

    @pytest.fixture
    async def host(self, engine: Engine, admission: resources.Admission) -> AsyncIterator[LocalSyncHost]:
        opened = LocalSyncHost(engine, admission)
        yield opened
        await opened.close()


async def test_an_exposed_service_answers_on_its_own_port(engine: Engine, admission: resources.Admission) -> None:
    host = LocalExposedHost(engine, admission, Pace(grace=1, check_within=5))
    script = "echo from the image > /job/index.html; exec httpd -f -p 80 -h /job"
    try:
        await host.apply(order(script, expose=Expose(api_port=(80,), min_scale=1, health_path="/")), running=True)
        await until_state(host, "ready")
        assert await ask(host) == b"from the image\n"
    finally:
        await host.close()


async def test_the_script_is_in_the_image_and_is_not_root(runtime: PodmanRuntime, engine: Engine, home: Path) -> None:
    logs = LogBook(home / "logs", limit=64 * 1024)
    job = order(
        "id -u; ls -d /usr /etc/shadow /root; touch /bin/x; cat /proc/1/status | grep CapEff", log_level="ERROR"
    )
    await LocalJobHost(engine, logs).run(job)
    said = (await logs.read(job.name, timestamps=False) or "").splitlines()
    assert int(said[0]) >= 60_000_000
    assert "CapEff:\t0000000000000000" in said
    assert sum("No such file" in line for line in said) == 3
    assert any("Read-only file system" in line for line in said)


@pytest.mark.parametrize("name", ["--privileged", "oci-archive:/etc/x", "dir:/etc", "../x", ""])
async def test_a_name_cannot_be_an_option_or_a_file(engine: Engine, home: Path, name: str) -> None:
    host = LocalJobHost(engine, LogBook(home / "logs", limit=64 * 1024))
    outcome = await host.run(order("true", image=name))
    assert not outcome.succeeded
    assert "not started" in outcome.reason


async def test_variables_arrive_whole_and_are_not_podmans(engine: Engine, home: Path) -> None:
    logs = LogBook(home / "logs", limit=64 * 1024)
    odd = {"LINES": "one\ntwo 'x' \"y\" $HOME \\", "LD_PRELOAD_": "x", "CONTAINERS_CONF": "/nowhere", "UMLAUT": "ä日"}
    job = order('echo "$LINES"; echo "$CONTAINERS_CONF $UMLAUT"', secrets=odd, log_level="ERROR")
    assert (await LocalJobHost(engine, logs).run(job)).succeeded
    assert await logs.read(job.name, timestamps=False) == odd["LINES"] + "\n/nowhere ä日\n"


async def test_a_new_manager_ends_what_a_dead_one_left(runtime: PodmanRuntime, home: Path, engine: Engine) -> None:
    workdir = engine.workdir("left")
    left = order("sleep 300")
    await engine.prepare(left, workdir, engine.call_files(left, workdir))
    process = await engine.start(engine.launch(left, workdir, id="left"), left, workdir)
    again = await PodmanRuntime.open(
        instance=runtime._instance, uid_base=1, run_dir=home / "again", way_out=runtime._way_out
    )
    async with asyncio.timeout(20):
        exit = await process.wait()
    await again.close()
    assert exit.code == 137
