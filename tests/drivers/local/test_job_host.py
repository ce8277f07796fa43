"""Do jobs run on this machine, once, and without harm? The contract first, then what only a local engine risks."""

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from contracts.job_host import JobHostContract, keys_of, log_of, uploaded
from contracts.orders import order
from hansa.drivers.local.background import Background
from hansa.drivers.local.disks import IMAGE, Disks
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.job_host import LocalJobHost
from hansa.drivers.local.job_logs import LogBook
from hansa.drivers.local.launch import Ceiling
from hansa.drivers.local.process import Process
from hansa.drivers.local.runtime import HostRuntime
from hansa.drivers.local.staging import OwnStore
from hansa.drivers.local.workdir import Workdir
from hansa.drivers.s3 import OpenStore
from hansa.kernel.errors import Invalid
from hansa.services import RunOrder, StorageIO, VolumeMount
from hansa.storage import Keys, Loans, ObjectStore, Reach, StoreAddress

pytest_plugins = ("real.object_store",)

_DISK = 64 * 2**20
ROOT = Path(__file__).resolve().parents[3]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="users of their own for jobs need root")


def to(bucket: str, folder: str = "out") -> tuple[StorageIO, ...]:
    return (StorageIO(storage_provider="minio.default", path=f"{bucket}/{folder}"),)


@contextlib.asynccontextmanager
async def relay(port: int, endpoint: str) -> AsyncIterator[None]:
    """Passes every connection on to the store."""
    there = urlsplit(endpoint)
    opened: list[asyncio.StreamWriter] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(there.hostname, there.port)
        opened.extend((writer, far_writer))
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    async with await asyncio.start_server(connected, "127.0.0.1", port):
        yield
    for writer in opened:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def processes_of(uid_base: int) -> list[int]:
    """Every process of this manager's jobs, but for those that are dead and only not yet asked how they ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                owner, state = entry.stat().st_uid, (entry / "stat").read_text().rpartition(") ")[2][0]
            except OSError:
                continue
            if uid_base <= owner < uid_base + 256 and state not in "ZX":
                found.append(int(entry.name))
    return found


@pytest.fixture
def listed() -> Iterator[list[int]]:
    """The threads in which folders were listed."""
    heard: list[int] = []
    listening = True

    def hear(event: str, _: object) -> None:
        if listening and event in ("os.listdir", "os.scandir"):
            heard.append(threading.get_ident())

    sys.addaudithook(hear)  # there is no way to take it away again
    yield heard
    listening = False


class TestLocal(JobHostContract):
    """The contract, on this machine."""


class _Noting:
    """Real loans, and which of them ended."""

    def __init__(self, inner: Loans) -> None:
        self._inner = inner
        self.lent: list[str] = []
        self.ended: list[str] = []

    def new_name(self) -> str:
        return self._inner.new_name()

    async def lend(self, name: str, reach: Reach) -> Keys:
        self.lent.append(name)
        return await self._inner.lend(name, reach)

    async def end(self, name: str) -> None:
        await self._inner.end(name)
        self.ended.append(name)

    async def end_others(self, alive: frozenset[str]) -> int:
        return await self._inner.end_others(alive)

    async def close(self) -> None:
        await self._inner.close()


async def test_one_that_is_called_off_as_its_script_is_let_go_leaves_neither_script_nor_keys(
    engine: Engine,
    own_store: OwnStore,
    logs: LogBook,
    store: ObjectStore,
    bucket: str,
    uid_base: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await store.put(bucket, "in/a.txt", b"a")
    assert own_store.loans is not None
    loans, background = _Noting(own_store.loans), Background()
    own = replace(own_store, loans=loans, later=background.start)
    release = Process.release

    async def released(process: Process) -> None:
        await release(process)
        asyncio.get_running_loop().call_soon(running.cancel)

    monkeypatch.setattr(Process, "release", released)
    host = LocalJobHost(replace(engine, own=own), logs)
    running = asyncio.create_task(host.run(order("sleep 60", event=uploaded(bucket, "in/a.txt"))))
    with pytest.raises(asyncio.CancelledError):
        await running
    async with asyncio.timeout(30):
        while processes_of(uid_base):  # what waits for the next job is root's
            await asyncio.sleep(0.02)
    await background.finish()
    assert loans.ended == loans.lent != []


class TestWhatAScriptLeaves:
    async def test_outputs_that_the_machine_could_not_keep_are_not_delivered(
        self, host: LocalJobHost, store: ObjectStore, bucket: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(workdir: Workdir) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(Workdir, "write_out", full)
        outcome = await host.run(order('echo holes > "$TMP_OUTPUT_DIR/x"', output=to(bucket)))
        assert (outcome.succeeded, outcome.reason) == (
            False,
            "what it wrote was lost: No space left on device on the disk of this machine",
        )
        assert await keys_of(store, bucket) == []

    async def test_a_run_that_an_older_manager_began_starts_over(self, host: LocalJobHost, home: Path) -> None:
        """Its folder has no `disk`."""
        job = order("echo anew")
        left = home / "work" / job.name / "job"
        left.mkdir(parents=True)
        (left / "old").touch()
        assert (await host.run(job)).succeeded
        assert not left.exists()

    async def test_links_out_of_its_folder_are_not_followed(
        self, host: LocalJobHost, home: Path, store: ObjectStore, bucket: str
    ) -> None:
        secret = home / "manager-secret"
        secret.write_text("the manager's own")
        job = order(
            f"""
            cd "$TMP_OUTPUT_DIR"
            ln -s /etc/shadow shadow
            ln -s {secret} secret
            ln -s ../../state.json state
            ln -s / root
            mkfifo pipe
            mkdir real; ln -s {home} real/home
            echo fine > real/fine.txt
            """,
            output=to(bucket),
        )
        assert (await host.run(job)).succeeded
        assert await keys_of(store, bucket) == ["out/real/fine.txt"]

    async def test_a_link_in_place_of_the_output_folder_is_not_followed(
        self, host: LocalJobHost, home: Path, store: ObjectStore, bucket: str
    ) -> None:
        (home / "private").mkdir()
        (home / "private" / "secret").write_text("the manager's own")
        job = order(f"rm -r /job/output; ln -s {home}/private /job/output", output=to(bucket))
        assert (await host.run(job)).succeeded
        assert await keys_of(store, bucket) == []

    @needs_root
    async def test_a_hard_link_to_a_file_of_others_is_left_out(
        self, engine: Engine, logs: LogBook, home: Path, store: ObjectStore, bucket: str
    ) -> None:
        """Where a machine lets users make such links (`fs.protected_hardlinks=0`), and the sandbox is weak. A disk of
        the run's own knows no files of others."""
        engine = replace(engine, disks=Disks(home))
        host = LocalJobHost(engine, logs)
        secret = home / "manager-secret"
        secret.write_text("the manager's own")
        job = order(
            'echo mine > "$TMP_OUTPUT_DIR/a"; ln "$TMP_OUTPUT_DIR/a" "$TMP_OUTPUT_DIR/b"; sleep 1',
            output=to(bucket),
        )
        running = asyncio.create_task(host.run(job))
        output = engine.workdir(job.name).output
        async with asyncio.timeout(20):
            while not (output / "b").exists():
                await asyncio.sleep(0.02)
        os.link(secret, output / "stolen")
        assert (await running).succeeded
        assert await keys_of(store, bucket) == ["out/a", "out/b"]

    async def test_very_deep_folders_fail_the_job_and_can_be_removed(
        self, host: LocalJobHost, home: Path, bucket: str
    ) -> None:
        job = order(
            'cd "$TMP_OUTPUT_DIR"; steps=$(printf "d/%.0s" $(seq 200)); '
            'for i in 1 2 3 4 5 6; do mkdir -p "$steps"; cd "$steps"; done; echo x > x',
            output=to(bucket),
            cpu=2000,
        )
        outcome = await host.run(job)
        assert not outcome.succeeded
        assert "nested" in outcome.reason
        await host.discard(job.name)
        assert not (home / "work" / job.name).exists()

    async def test_the_managers_loop_lists_no_folder_of_a_job(
        self, host: LocalJobHost, logs: LogBook, listed: list[int], bucket: str
    ) -> None:
        """How much is in there is the job's to say, and everybody else would wait."""
        job = order('mkdir "$TMP_OUTPUT_DIR/deep"; echo x > "$TMP_OUTPUT_DIR/deep/x"; exit 1', output=to(bucket))
        assert not (await host.run(job)).succeeded
        assert "outputs of a failed script are not stored" in await log_of(logs, job.name)
        assert listed, "somebody looked"
        assert threading.get_ident() not in listed

    async def test_a_name_cannot_lead_out_of_the_work_folder(self, host: LocalJobHost) -> None:
        with pytest.raises(Invalid):
            await host.run(replace(order("true"), name="../../etc"))


class TestEnd:
    @needs_root
    async def test_a_cancelled_run_leaves_no_process(self, host: LocalJobHost, logs: LogBook, uid_base: int) -> None:
        job = order("(setsid sleep 300 &) ; sleep 300 & echo started; sleep 300", seconds=300)
        running = asyncio.create_task(host.run(job))
        async with asyncio.timeout(20):
            while "started" not in (await logs.read(job.name, timestamps=False) or ""):
                await asyncio.sleep(0.02)
        assert processes_of(uid_base)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert processes_of(uid_base) == []

    async def test_two_calls_for_one_job_run_it_once(self, host: LocalJobHost, logs: LogBook) -> None:
        job = order("echo ran")
        one, other = await asyncio.gather(host.run(job), host.run(job))
        assert one == other
        assert (await log_of(logs, job.name)).count("ran\n") == 1

    async def test_a_run_cut_short_starts_over_in_a_fresh_folder(
        self, host: LocalJobHost, logs: LogBook, engine: Engine, store: ObjectStore, bucket: str
    ) -> None:
        job = order('ls "$TMP_OUTPUT_DIR"; echo new > "$TMP_OUTPUT_DIR/new"', output=to(bucket))
        workdir = engine.workdir(job.name)
        await engine.prepare(job, workdir, {"output/half": b"half"})
        assert (await host.run(job)).succeeded
        assert await keys_of(store, bucket) == ["out/new"]
        assert "half" not in await log_of(logs, job.name)

    async def test_a_dead_launcher_costs_a_second_try(
        self, host: LocalJobHost, runtime: HostRuntime, logs: LogBook, engine: Engine
    ) -> None:
        job = order("echo started; sleep 2")
        running = asyncio.create_task(host.run(job))
        async with asyncio.timeout(30):
            while "started" not in (await logs.read(job.name, timestamps=False) or ""):
                await asyncio.sleep(0.02)
            os.kill(runtime.launcher_pid, signal.SIGKILL)
            assert (await running).succeeded
        assert "starts over" in await log_of(logs, job.name)


class TestManagerKilled:
    async def test_a_script_that_ended_is_not_run_again(
        self,
        engine: Engine,
        host: LocalJobHost,
        logs: LogBook,
        home: Path,
        store: ObjectStore,
        bucket: str,
        uid_base: int,
    ) -> None:
        """kill -9 between the script's end and the upload; the next manager goes on from there."""
        job = order('cat /proc/sys/kernel/random/uuid > "$TMP_OUTPUT_DIR/id"; echo ran', output=to(bucket))
        await self.killed_after_the_script_of(job, home, uid_base)
        left = (engine.workdir(job.name).output / "id").read_bytes()
        assert await host.ended() == {job.name}
        outcome = await host.run(job)
        assert outcome.succeeded
        assert await store.get(bucket, "out/id") == left
        assert (await log_of(logs, job.name)).count("ran\n") == 1

        await store.delete(bucket, "out/id")
        assert await host.run(job) == outcome
        assert await keys_of(store, bucket) == [], "what was staged is not staged again"

    @needs_root
    async def test_outputs_on_a_disk_that_cannot_be_opened_wait_for_it(
        self, engine: Engine, host: LocalJobHost, home: Path, store: ObjectStore, bucket: str, uid_base: int
    ) -> None:
        """No loop device is free, or the manager is not root this time: the machine's trouble, and not the job's."""
        if not engine.disks.hard:
            pytest.skip("runs have no disks of their own here")
        heard: asyncio.Queue[str] = asyncio.Queue()
        script = 'echo whole > "$TMP_OUTPUT_DIR/x"'
        job = replace(order(script, output=to(bucket)), explain=heard.put, disk=_DISK)
        await self.killed_after_the_script_of(job, home, uid_base)
        image = home / "work" / job.name / IMAGE
        aside = image.rename(image.with_name("aside"))
        image.symlink_to(aside)  # no such thing is mounted
        running = asyncio.create_task(host.run(job))
        try:
            async with asyncio.timeout(40):
                assert "outputs wait" in await heard.get()
            assert not running.done()
            aside.rename(image)
            async with asyncio.timeout(40):
                assert (await running).succeeded
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert await store.get(bucket, "out/x") == b"whole\n"

    async def killed_after_the_script_of(self, job: RunOrder, home: Path, uid_base: int) -> None:
        told = {
            "name": job.name,
            "script": job.service.script,
            "output": job.service.output[0].path,
            "disk": job.disk,
            "home": str(home),
            "uid_base": uid_base + 256 * 50,
        }
        manager = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("manager_process.py")),
            json.dumps(told),
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"},
        )
        try:
            async with asyncio.timeout(40):
                while not (home / "work" / job.name / "state.json").exists():
                    assert manager.returncode is None
                    await asyncio.sleep(0.02)
        finally:
            if manager.returncode is None:
                manager.kill()
            await manager.wait()


class TestStaging:
    async def test_the_input_is_not_fetched_where_the_script_wants_to_do_it(
        self, host: LocalJobHost, logs: LogBook, bucket: str
    ) -> None:
        job = order(
            'ls "$TMP_INPUT_DIR"; echo "$STORAGE_OBJECT_KEY ${INPUT_FILE_PATH-none}"',
            event=uploaded(bucket, "in/huge.bin"),
            file_stage_in=True,
        )
        assert (await host.run(job)).succeeded
        assert f"{bucket}/in/huge.bin none\n" in await log_of(logs, job.name)

    async def test_a_store_that_is_away_for_a_while_is_asked_again(
        self, engine: Engine, object_store: OpenStore, home: Path, bucket: str
    ) -> None:
        """The way to the store is a relay that opens only after the first tries have failed."""
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            port = reserved.getsockname()[1]
        away = replace(engine.own, address=StoreAddress(f"http://127.0.0.1:{port}", "", verify=True))
        logs = LogBook(home / "logs", limit=64 * 1024)
        host = LocalJobHost(replace(engine, own=away), logs)
        job = order('echo late > "$TMP_OUTPUT_DIR/late.txt"', output=to(bucket))
        running = asyncio.create_task(host.run(job))
        try:
            async with asyncio.timeout(30):
                while "trying again" not in (await logs.read(job.name, timestamps=False) or ""):
                    await asyncio.sleep(0.02)
                async with relay(port, object_store.store.address.endpoint):
                    assert (await running).succeeded
        finally:
            running.cancel()
            await asyncio.wait([running])
        assert await object_store.store.get(bucket, "out/late.txt") == b"late\n"

    async def test_a_store_that_stays_away_fails_the_job_in_the_end(self, engine: Engine, home: Path) -> None:
        gone = replace(engine.own, address=StoreAddress("http://127.0.0.1:1", "", verify=True))
        host = LocalJobHost(replace(engine, own=gone, patience=1), LogBook(home / "logs", limit=2**16))
        outcome = await host.run(order('echo x > "$TMP_OUTPUT_DIR/x"', output=to("bucket")))
        assert (outcome.succeeded, outcome.exit_code) == (False, 0)
        assert "could not be stored" in outcome.reason

    async def test_a_foreign_store_is_opened_with_the_keys_of_the_order(
        self, host: LocalJobHost, object_store: OpenStore, bucket: str
    ) -> None:
        keys = object_store.keys
        job = order(
            'echo far > "$TMP_OUTPUT_DIR/far.txt"',
            output=(StorageIO(storage_provider="s3.far", path=f"{bucket}/away"),),
            storage_providers={"s3": {"far": {"endpoint": object_store.store.address.endpoint}}},
            providers={"s3.far": {"access_key": keys.access_key, "secret_key": keys.secret_key}},
        )
        assert (await host.run(job)).succeeded
        assert await object_store.store.get(bucket, "away/far.txt") == b"far\n"

    async def test_a_store_nobody_defined_is_named_in_the_reason(self, host: LocalJobHost) -> None:
        job = order('echo x > "$TMP_OUTPUT_DIR/x"', output=(StorageIO(storage_provider="s3.ghost", path="b/out"),))
        outcome = await host.run(job)
        assert "s3.ghost" in outcome.reason

    async def test_a_mounted_folder_comes_and_its_changes_go_back(
        self, host: LocalJobHost, logs: LogBook, store: ObjectStore, bucket: str
    ) -> None:
        for name in ("data/kept.txt", "data/sub/changed.txt", "elsewhere.txt"):
            await store.put(bucket, name, b"before")
        kept = await store.head(bucket, "data/kept.txt")
        job = order(
            f"cd /mnt/{bucket}/data; find . -type f | sort; echo more >> sub/changed.txt; echo x > fresh.txt",
            mount=StorageIO(storage_provider="minio.default", path=f"{bucket}/data"),
        )
        outcome = await host.run(job)
        assert outcome.succeeded, await log_of(logs, job.name)
        assert "./kept.txt\n./sub/changed.txt\n" in await log_of(logs, job.name)
        assert await store.get(bucket, "data/sub/changed.txt") == b"beforemore\n"
        assert await store.get(bucket, "data/fresh.txt") == b"x\n"
        assert await store.head(bucket, "data/kept.txt") == kept

    @needs_root
    async def test_a_volume_is_shared_by_its_group(self, host: LocalJobHost, home: Path) -> None:
        volume = home / "volume"
        volume.mkdir()
        os.chown(volume, 0, 59_999)
        volume.chmod(0o2770)
        mount = VolumeMount(str(volume), "/data", 59_999)
        for word in ("first", "second"):
            job = order(f"echo {word} >> /data/notes.txt", mounts=(mount,))
            assert (await host.run(job)).succeeded
        assert (volume / "notes.txt").read_text() == "first\nsecond\n"


class TestWeakerIsolation:
    """Where no namespaces may be made, the script sees the real paths; its variables must say so."""

    @pytest.fixture
    async def runtime(self, home: Path, uid_base: int) -> AsyncIterator[HostRuntime]:
        home.chmod(0o755)
        opened = await HostRuntime.open(
            instance=f"weak-{os.getpid()}",
            uid_base=uid_base,
            run_dir=home / "launcher",
            ceiling=Ceiling(level="landlock"),
        )
        yield opened
        await opened.close()

    async def test_a_job_finds_its_folders(self, host: LocalJobHost, store: ObjectStore, bucket: str) -> None:
        job = order('cp "$INPUT_FILE_PATH" "$TMP_OUTPUT_DIR/copy"', event=b"aGVsbG8=", output=to(bucket))
        outcome = await host.run(job)
        assert outcome.succeeded, outcome.reason
        assert await store.get(bucket, "out/copy") == b"hello"
