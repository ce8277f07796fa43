"""Are calls answered by warm workers, and is nothing left of them?"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.job_host import uploaded
from contracts.orders import MIB, order
from contracts.sync_host import SyncHostContract
from hansa import resources
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.runtime import HostRuntime
from hansa.drivers.local.sync_host import LocalSyncHost
from hansa.services import NoWorker, RunOrder, StorageIO, reach_of
from hansa.services.service import Synchronous
from hansa.storage import ObjectStore

pytest_plugins = ("real.object_store",)


@pytest.fixture
async def host(engine: Engine, admission: resources.Admission) -> AsyncIterator[LocalSyncHost]:
    opened = LocalSyncHost(engine, admission)
    yield opened
    await opened.close()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.02)


def warm_order(script: str = "echo answer", *, least: int = 1, most: int = 0, **more: object) -> RunOrder:
    return order(script, synchronous=Synchronous(min_scale=least, max_scale=most), **more)  # type: ignore[arg-type]


class TestLocal(SyncHostContract):
    """The contract, on this machine."""

    async def test_a_call_that_leaves_too_many_files_is_told_what_to_do(self, host: LocalSyncHost) -> None:
        script = 'cd "$TMP_OUTPUT_DIR"; for i in $(seq 10001); do : > $i; done'
        reply = await host.invoke(order(script, cpu=2000))
        assert "more than 10,000 files, folders and links: pack its results into one file" in reply.reason


class TestWarmWorkers:
    async def test_they_stand_ready_hold_their_share_and_are_replaced_after_use(
        self, host: LocalSyncHost, admission: resources.Admission
    ) -> None:
        wanted = warm_order("cat $INPUT_FILE_PATH; echo $$", least=2)
        await host.settle({"tool": wanted})
        await until(lambda: host.warm("tool") == 2)
        assert admission.ledger.promised == resources.Needs(1000, 128 * MIB, 128 * MIB)
        reply = await host.invoke(warm_order("cat $INPUT_FILE_PATH; echo $$", least=2, event=b"aGk="))
        assert reply.body.startswith(b"hi")
        await until(lambda: host.warm("tool") == 2)
        await host.settle({})
        await until(lambda: admission.ledger.promised == resources.Needs(0, 0))
        assert host.warm("tool") == 0

    async def test_a_call_takes_the_warm_one_even_if_the_cluster_is_full(
        self, host: LocalSyncHost, admission: resources.Admission
    ) -> None:
        await host.settle({"tool": warm_order()})
        await until(lambda: host.warm("tool") == 1)
        assert admission.try_hold("everything", admission.ledger.free)
        with pytest.raises(NoWorker, match="full"):
            await host.invoke(order("true", name="other", seconds=0.3))
        assert (await host.invoke(warm_order())).body == b"answer\n"

    async def test_a_new_definition_makes_new_workers(self, host: LocalSyncHost) -> None:
        await host.settle({"tool": warm_order("echo old")})
        await until(lambda: host.warm("tool") == 1)
        fresh = warm_order("echo new")
        assert (await host.invoke(fresh)).body == b"new\n", "a worker of the old one is not used"
        await host.settle({"tool": fresh})
        await until(lambda: host.warm("tool") == 1)
        assert (await host.invoke(fresh)).body == b"new\n"

    async def test_they_stay_within_the_largest_scale(self, host: LocalSyncHost) -> None:
        wanted = warm_order("sleep 1; echo x", least=1, most=1)
        await host.settle({"tool": wanted})
        await until(lambda: host.warm("tool") == 1)
        call = asyncio.create_task(host.invoke(wanted))
        await asyncio.sleep(0.5)
        assert host.warm("tool") == 0, "the one that works is all there may be"
        await call
        await until(lambda: host.warm("tool") == 1)

    async def test_dead_ones_are_replaced(self, host: LocalSyncHost, runtime: HostRuntime) -> None:
        await host.settle({"tool": warm_order()})
        await until(lambda: host.warm("tool") == 1)
        os.kill(runtime.launcher_pid, signal.SIGKILL)
        await until(lambda: host.warm("tool") == 0)
        await until(lambda: host.warm("tool") == 1)
        assert (await host.invoke(warm_order())).body == b"answer\n"


class TestRights:
    @pytest.mark.parametrize("what", ["input", "mount"])
    async def test_a_right_that_is_lost_while_a_call_waits_gives_it_nothing(
        self, host: LocalSyncHost, admission: resources.Admission, store: ObjectStore, bucket: str, what: str
    ) -> None:
        """When its turn comes, the bucket may be somebody else's, under the same name."""
        await store.put(bucket, "in/x", b"somebody else's by now")
        one_at_a_time = Synchronous(max_scale=1)
        wish: dict[str, Any] = {"event": uploaded(bucket, "in/x")}
        if what == "mount":
            wish = {"mount": StorageIO(storage_provider="minio.default", path=f"{bucket}/in")}
        may_use = True
        asked = order('cat "$INPUT_FILE_PATH"; grep -r . /mnt', synchronous=one_at_a_time, **wish)
        asked = replace(asked, reach=reach_of(asked, "anybody", lambda user, bucket: may_use))
        first = asyncio.create_task(host.invoke(order("sleep 1000", synchronous=one_at_a_time, seconds=1000)))
        second = asyncio.create_task(host.invoke(asked))
        try:
            await until(lambda: admission.ledger.promised.cpu > 0)
            may_use = False
            first.cancel()
            async with asyncio.timeout(60):
                reply = await second
        finally:
            second.cancel()
            await asyncio.gather(first, second, return_exceptions=True)
        assert (reply.body, reply.exit_code) == (b"", None)
        assert f"bucket {bucket}" in reply.reason


class TestTraces:
    async def test_nothing_is_left_of_a_call(
        self, host: LocalSyncHost, admission: resources.Admission, home: Path
    ) -> None:
        await host.invoke(order("echo x > /job/output/x; echo y > /job/y"))
        await until(lambda: admission.ledger.promised == resources.Needs(0, 0))
        assert list((home / "work" / ".run").iterdir()) == []

    async def test_a_cancelled_call_ends_its_script(
        self, host: LocalSyncHost, admission: resources.Admission, home: Path
    ) -> None:
        call = asyncio.create_task(host.invoke(order("sleep 60", seconds=60)))
        await until(lambda: admission.ledger.promised.cpu > 0)
        await asyncio.sleep(0.2)
        call.cancel()
        await asyncio.wait([call])
        await until(lambda: admission.ledger.promised == resources.Needs(0, 0))
        assert list((home / "work" / ".run").iterdir()) == []

    async def test_a_new_manager_sweeps_what_a_dead_one_left(self, engine: Engine, home: Path) -> None:
        for shelf in (".run", ".exposed"):
            (home / "work" / shelf / "old").mkdir(parents=True)
        await engine.sweep()
        assert [path.name for path in (home / "work").iterdir() if path.name != ".disks"] == []


class TestShares:
    """What one owner may hold; the warm worker of a service is its owner's, a call is its caller's."""

    @pytest.fixture
    async def host(self, engine: Engine, admission: resources.Admission) -> AsyncIterator[LocalSyncHost]:
        admission.shares.share_of = lambda owner: resources.Share(500)
        opened = LocalSyncHost(engine, admission)
        yield opened
        await opened.close()

    async def test_no_more_warm_workers_than_the_share(
        self, host: LocalSyncHost, admission: resources.Admission
    ) -> None:
        await host.settle({"tool": warm_order(least=3, cpu=200, owner="alice")})
        await until(lambda: host.warm("tool") == 2)
        assert admission.shares.of("alice").cpu == 400
        with pytest.raises(NoWorker, match="of your quota of 500m 100m are left"):
            await host.invoke(order("true", name="another", cpu=200, seconds=0.3, owner="alice"))

    async def test_a_call_counts_for_who_calls(self, host: LocalSyncHost, admission: resources.Admission) -> None:
        hers = warm_order("sleep 1", least=1, cpu=400, owner="alice")
        await host.settle({"tool": hers})
        await until(lambda: host.warm("tool") == 1)
        call = asyncio.create_task(host.invoke(replace(hers, submitter="bob")))
        await until(lambda: admission.shares.of("bob").cpu == 400)
        with pytest.raises(NoWorker, match="quota"):
            await host.invoke(replace(hers, seconds=0.2, submitter="bob"))
        await until(lambda: admission.shares.of("alice").cpu == 400)  # the next one stands ready for the owner
        await call
        await until(lambda: admission.shares.of("bob").cpu == 0)
