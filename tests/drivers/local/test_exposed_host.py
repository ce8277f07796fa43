"""Are long-lived services kept alive on this machine, with growing pauses, and is nothing left of them?"""

import asyncio
import errno
import os
import signal
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contracts.exposed_host import ExposedHostContract, ask, server, until_state
from contracts.orders import order
from hansa import resources
from hansa.drivers.local.disks import Disks
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.exposed_host import LocalExposedHost
from hansa.drivers.local.instance import Pace
from hansa.drivers.local.runtime import HostRuntime
from hansa.services import VolumeMount
from hansa.services.service import Expose

pytest_plugins = ("real.object_store",)

QUICK = Pace(check_starting=0.05, check_every=0.2, first_pause=0.3, handover=5, grace=1)


@pytest.fixture
async def host(engine: Engine, admission: resources.Admission) -> AsyncIterator[LocalExposedHost]:
    opened = LocalExposedHost(engine, admission, QUICK)
    yield opened
    await opened.close()


class TestLocal(ExposedHostContract):
    """The contract, on this machine."""


class TestRecovery:
    async def test_pauses_grow_until_it_comes_up(self, host: LocalExposedHost, home: Path) -> None:
        """It crashes at its start until a file appears on its volume."""
        switch = home / "switch"
        switch.mkdir()
        switch.chmod(0o755)
        mount = VolumeMount(str(switch), "/switch", 59_998)
        await host.apply(server("up", before="[ -e /switch/on ] || exit 4\n", mounts=(mount,)), running=True)
        seen = await until_state(host, "failed")
        assert seen.reason == "exit code 4"
        async with asyncio.timeout(20):
            while sum("next start" in line.text for line in host.log("tool", 50)) < 3:
                await asyncio.sleep(0.02)
        (switch / "on").touch()
        await until_state(host, "ready")
        said = [line.text.partition("next start in ")[2] for line in host.log("tool", 50)]
        assert [text for text in said if text][:3] == ["0.3 s", "0.6 s", "1.2 s"]

    async def test_a_dead_launcher_is_survived(self, host: LocalExposedHost, runtime: HostRuntime) -> None:
        await host.apply(server("up"), running=True)
        await until_state(host, "ready")
        os.kill(runtime.launcher_pid, signal.SIGKILL)
        await until_state(host, "failed")
        await until_state(host, "ready")
        assert await ask(host) == b"up"

    async def test_one_that_becomes_sick_gets_no_calls(self, host: LocalExposedHost) -> None:
        script = """
        exec /usr/bin/python3 -S - <<'PROGRAM'
        import http.server
        class Handler(http.server.BaseHTTPRequestHandler):
            well = 5
            def do_GET(self):
                Handler.well -= 1
                self.send_response(200 if Handler.well > 0 else 503); self.end_headers()
        http.server.HTTPServer(("127.0.0.1", 5000), Handler).serve_forever()
        PROGRAM
        """
        expose = Expose(api_port=(5000,), min_scale=1, health_path="/")
        await host.apply(order(textwrap.dedent(script), expose=expose), running=True)
        await until_state(host, "ready")
        seen = await until_state(host, "pending")
        assert seen.active == 0


class Busy(Disks):
    """A folder cannot be removed, so many times."""

    times = 0

    def drop(self, home: Path) -> None:
        if self.times:
            self.times -= 1
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        super().drop(home)


class TestFoldersThatStay:
    @pytest.fixture
    def disks(self, home: Path) -> Busy:
        return Busy(home / "work")

    async def test_the_next_instance_starts_all_the_same(self, host: LocalExposedHost, disks: Busy) -> None:
        disks.times = 2  # before the first is made, and after it failed
        await host.apply(server("up"), running=True)
        seen = await until_state(host, "failed")
        assert "busy" in seen.reason
        await until_state(host, "ready")
        assert await ask(host) == b"up"

    async def test_a_service_that_is_removed_ends(self, host: LocalExposedHost, disks: Busy) -> None:
        await host.apply(server("up"), running=True)
        await until_state(host, "ready")
        disks.times = 1
        async with asyncio.timeout(20):
            await host.remove("tool")
        assert disks.times == 0


class TestRoom:
    async def test_it_waits_for_room_and_says_so(self, host: LocalExposedHost, admission: resources.Admission) -> None:
        assert admission.try_hold("busy", admission.ledger.free)
        await host.apply(server("up"), running=True)
        seen = await until_state(host, "pending")
        async with asyncio.timeout(5):
            while "waits" not in seen.reason:
                seen = await until_state(host, "pending")
                await asyncio.sleep(0.01)
        admission.release("busy")
        await until_state(host, "ready")

    async def test_where_both_do_not_fit_the_old_one_ends_first(
        self, host: LocalExposedHost, admission: resources.Admission
    ) -> None:
        await host.apply(server("old", cpu=3000), running=True)
        await until_state(host, "ready")
        await host.apply(server("new", cpu=3000), running=True)
        await until_state(host, "pending")
        await until_state(host, "ready")
        assert await ask(host) == b"new"

    async def test_a_broken_new_version_replaces_the_old_one_only_after_its_time(self, host: LocalExposedHost) -> None:
        await host.apply(server("old"), running=True)
        await until_state(host, "ready")
        await host.apply(order("exit 5", expose=Expose(api_port=(80,), health_path="/")), running=True)
        seen = await until_state(host, "degraded")
        assert "old one still answers" in seen.reason
        assert await ask(host) == b"old"
        await host.apply(server("repaired"), running=True)
        async with asyncio.timeout(20):
            while await ask(host) != b"repaired":
                await asyncio.sleep(0.02)

    async def test_everything_is_given_back(
        self, host: LocalExposedHost, admission: resources.Admission, home: Path
    ) -> None:
        await host.apply(server("up", scale=2), running=True)
        await until_state(host, "ready")
        assert admission.ledger.promised.cpu == 1000
        await host.remove("tool")
        assert admission.ledger.promised == resources.Needs(0, 0)
        assert list((home / "work" / ".exposed").iterdir()) == []


async def test_only_the_last_lines_are_kept(host: LocalExposedHost) -> None:
    await host.apply(server("up", before="seq 1 5000; printf '\\377 odd\\n'\n"), running=True)
    await until_state(host, "ready")
    async with asyncio.timeout(5):
        while host.log("tool", 1)[0].text != "listening":
            await asyncio.sleep(0.02)
    kept = host.log("tool", 100_000)
    assert len(kept) == 1000
    assert [line.text for line in host.log("tool", 3)] == ["5000", "\ufffd odd", "listening"]
