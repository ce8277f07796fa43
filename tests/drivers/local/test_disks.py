"""A run fills its own disk and nobody else's: with images where root can mount them, and with watched folders."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.job_host import keys_of, log_of, uploaded
from contracts.orders import MIB, order
from hansa import storage
from hansa.drivers.local import images
from hansa.drivers.local.disks import Disks, mounted_below, trouble
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.exposed_host import LocalExposedHost
from hansa.drivers.local.job_host import LocalJobHost
from hansa.drivers.local.job_logs import LogBook
from hansa.drivers.local.launcher import linux
from hansa.drivers.local.runtime import HostRuntime
from hansa.drivers.local.sync_host import LocalSyncHost
from hansa.drivers.local.volume_images import VolumeImages, image_of
from hansa.drivers.runs.removal import remove
from hansa.resources import Admission
from hansa.services import RunOrder, StorageIO, VolumeMount
from hansa.services.service import Expose
from hansa.storage import ObjectStore, Volume

pytest_plugins = ("real.object_store",)

DISK = 24 * MIB
BOUND = 640 * MIB  # beyond a soft limit, by a disk that writes a gibibyte a second
ROOT = Path(__file__).parents[3]
ATTACKS = {
    "one-large-file": "head -c 2G /dev/zero > big || exit 7",
    "into-the-output": 'head -c 2G /dev/zero > "$TMP_OUTPUT_DIR/big" || exit 7',
    "many-files": "n=0; while [ $n -lt 2000 ]; do head -c 1M /dev/zero > f$n || exit 7; n=$((n+1)); done",
    "many-names": "n=0; while [ $n -lt 100000 ]; do : > f$n || exit 7; n=$((n+1)); done",
    "deleted-but-open": "exec 9> f; rm f; while :; do head -c 9M /dev/zero >&9 || exit 7; done",
    "links": "head -c 1M /dev/zero > f; n=0; while :; do cp f g$n || exit 7; ln g$n h$n; n=$((n+1)); done",
}
images_only = pytest.mark.skipif(bool(trouble()), reason=f"no images here: {trouble()}")


@pytest.fixture(params=["image", "watched"])
def disks(request: pytest.FixtureRequest, home: Path) -> Iterator[Disks]:
    if request.param == "image" and (why := trouble()):
        pytest.skip(why)
    opened = Disks.open(home / "work", hard=request.param == "image", size=DISK)
    yield opened
    opened.close()
    assert loops_of(home) == []


def loops_of(home: Path) -> list[str]:
    """Images below this folder that are on a loop device, and stay there: anybody on the machine who looks for theirs
    may hold one for a moment."""
    for _ in range(200):
        found = []
        for known in Path("/sys/block").glob("loop*/loop/backing_file"):
            with contextlib.suppress(OSError):
                found.append(known.read_text().strip())
        left = [image for image in found if image.startswith(str(home))]
        if not left:
            return []
        time.sleep(0.02)
    return left


def taken(home: Path) -> int:
    """What the folder takes on the machine's own disk."""
    return int(subprocess.run(["du", "-s", "--block-size=1", home], check=True, capture_output=True).stdout.split()[0])


class TestJobs:
    @pytest.mark.parametrize("attack", ATTACKS)
    async def test_it_fails_in_words_and_the_machine_has_its_room(
        self, host: LocalJobHost, disks: Disks, home: Path, logs: LogBook, attack: str
    ) -> None:
        """Its memory is small: what it writes is no part of that."""
        job = order(ATTACKS[attack], disk=DISK, memory=64 * MIB)
        outcome = await host.run(job)
        assert not outcome.succeeded
        said = await log_of(logs, job.name)
        assert outcome.reason in said
        words = ("No space left", "File size limit", "File too large")  # of whoever was refused; the watcher says disk
        assert "disk" in outcome.reason or any(word in said for word in words), outcome
        assert taken(home) < (2 * DISK + 8 * MIB if disks.hard else BOUND)
        await host.discard(job.name)
        assert taken(home) < 8 * MIB

    async def test_what_fits_is_written(self, host: LocalJobHost, engine: Engine) -> None:
        job = order(
            'head -c 20M /dev/zero > "$TMP_OUTPUT_DIR/a"; sync; truncate -s 20M hole; df -k . | tail -1', disk=DISK
        )
        assert (await host.run(job)).succeeded
        await host.discard(job.name)

    async def test_a_neighbour_goes_on(self, host: LocalJobHost, logs: LogBook) -> None:
        neighbour = order(
            "head -c 8M /dev/zero > f; while [ ! -e /tmp/x ]; do sleep 1; cp f /tmp/x; done; ls f", disk=DISK
        )
        running = asyncio.create_task(host.run(neighbour))
        outcomes = await asyncio.gather(*(host.run(order(ATTACKS["many-files"], disk=DISK)) for _ in range(3)))
        assert not any(outcome.succeeded for outcome in outcomes)
        assert (await running).succeeded

    async def test_a_larger_one_is_made_for_who_asks(self, host: LocalJobHost) -> None:
        assert (await host.run(order("head -c 40M /dev/zero > f", disk=64 * MIB))).succeeded

    async def test_an_input_that_does_not_fit(
        self, host: LocalJobHost, store: ObjectStore, bucket: str, logs: LogBook
    ) -> None:
        await store.put(bucket, "in/big", bytes(32 * MIB))
        job = order("echo ran", event=uploaded(bucket, "in/big"), disk=DISK)
        outcome = await host.run(job)
        assert "the input needs 32Mi, the service's disk limit is 24Mi" in outcome.reason
        assert "ran\n" not in await log_of(logs, job.name)

    async def test_a_mounted_folder_that_does_not_fit(
        self, host: LocalJobHost, store: ObjectStore, bucket: str
    ) -> None:
        for number in range(4):
            await store.put(bucket, f"data/{number}", bytes(8 * MIB))
        mount = StorageIO(storage_provider="minio.default", path=f"{bucket}/data")
        outcome = await host.run(order("true", mount=mount, disk=DISK))
        assert "the service's disk limit is 24Mi" in outcome.reason or "disk of 24Mi is full" in outcome.reason

    async def test_a_body_that_does_not_fit(self, host: LocalJobHost, logs: LogBook) -> None:
        job = order("echo ran", event=os.urandom(40 * MIB), disk=DISK)
        outcome = await host.run(job)
        assert not outcome.succeeded
        assert "disk limit is 24Mi" in outcome.reason
        assert "ran\n" not in await log_of(logs, job.name)

    async def test_the_mounted_folder_is_on_the_same_disk(
        self, host: LocalJobHost, store: ObjectStore, bucket: str, home: Path, disks: Disks
    ) -> None:
        await store.put(bucket, "data/a", b"a")
        mount = StorageIO(storage_provider="minio.default", path=f"{bucket}/data")
        script = f"cd /mnt/{bucket}/data; {ATTACKS['many-files']}"
        outcome = await host.run(order(script, mount=mount, disk=DISK))
        assert "disk" in outcome.reason
        assert await keys_of(store, bucket) == ["data/a"]


class TestCallsAndServices:
    async def test_a_call(self, engine: Engine, admission: Admission) -> None:
        host = LocalSyncHost(engine, admission)
        try:
            reply = await host.invoke(order(ATTACKS["many-files"], disk=DISK))
            assert "disk" in reply.reason
            reply = await host.invoke(order("echo ran", event=os.urandom(32 * MIB), disk=DISK))
            assert "the input needs 32Mi, the service's disk limit is 24Mi" in reply.reason
            reply = await host.invoke(order("echo fine", disk=DISK))
            assert (reply.body, reply.reason) == (b"fine\n", "")
        finally:
            await host.close()

    async def test_an_exposed_service(self, engine: Engine, admission: Admission) -> None:
        host = LocalExposedHost(engine, admission)
        try:
            asked = order(ATTACKS["many-files"], disk=DISK, expose=Expose(api_port=(8080,), min_scale=1, max_scale=1))
            await host.apply(asked, running=True)
            async with asyncio.timeout(30):
                while not any("disk" in line.text for line in host.log("tool", 50)):
                    await asyncio.sleep(0.05)
        finally:
            await host.close()


class TestMemoryOnly:
    @pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
    async def test_scratch_is_memory(self, host: LocalJobHost, home: Path, place: str) -> None:
        outcome = await host.run(order(f"head -c 300M /dev/zero > {place}/big", memory=64 * MIB, disk=512 * MIB))
        assert not outcome.succeeded
        assert taken(home) < 32 * MIB


@images_only
class TestKilled:
    async def test_nothing_is_left_but_what_is_still_to_deliver(
        self, home: Path, uid_base: int, store: ObjectStore, bucket: str
    ) -> None:
        """kill -9 of manager and launcher: the kernel takes devices and mounts back with their last handle. A sandbox
        that is being built in that moment can outlive them; the next launcher ends it at its start."""
        job = order("sleep 600")
        told = {"name": job.name, "script": "sleep 600", "output": f"{bucket}/out", "home": str(home)}
        before = mounted_below(Path("/"))
        manager = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("manager_process.py")),
            json.dumps(told | {"uid_base": uid_base}),
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"},
        )
        async with asyncio.timeout(40):
            while not (home / "work" / job.name / "disk.img").exists():
                await asyncio.sleep(0.02)
            assert loops_of(home)
            launcher = Path(f"/proc/{manager.pid}/task/{manager.pid}/children").read_text().split()
            manager.kill()
            for pid in launcher:
                os.kill(int(pid), signal.SIGKILL)
            await manager.wait()
            again = await HostRuntime.open(instance="killed", uid_base=uid_base, run_dir=home / "launcher-killed")
            await again.close()
            while loops_of(home):
                await asyncio.sleep(0.02)
        assert mounted_below(Path("/")) == before
        Disks.open(home / "work", hard=False, size=DISK).close()
        assert [path.name for path in (home / "work").iterdir()] == [job.name]

    def test_places_of_containers_are_cleared_at_the_next_start(self, home: Path) -> None:
        """They are in everybody's view, so they outlive a manager that was killed."""
        work = home / "work"
        if os.fork() == 0:
            Disks.open(work, hard=True, size=DISK, placed=True).make(work / "one", DISK)
            os._exit(0)
        os.wait()
        assert mounted_below(work) == [str(work / "one" / "disk")]
        again = Disks.open(work, hard=True, size=DISK, placed=True)
        assert mounted_below(work) == []
        again.make(work / "two", DISK)
        (work / "two" / "disk" / "seen").write_text("by path")
        assert (again.reach(work / "two") / "seen").read_text() == "by path"
        assert again.device(work / "two") is None
        again.close()
        assert (mounted_below(work), loops_of(home)) == ([], [])

    @pytest.mark.parametrize("name", [b"donn\xc3\xa9es", b"caf\xe9", b"two words\t\\134"])
    def test_mounts_are_found_whatever_their_folders_are_called(self, home: Path, name: bytes) -> None:
        """Also those of others, whose names may be no UTF-8."""
        work = home / os.fsdecode(name)
        (work / "run").mkdir(parents=True)
        linux.mount("tmpfs", str(work / "run"), "tmpfs", options="size=1m")
        try:
            assert mounted_below(work) == [str(work / "run")]
            assert mounted_below(home / "elsewhere") == []
        finally:
            assert linux.take_place(str(work / "run"))

    def test_what_a_manager_left_is_found_again(self, home: Path) -> None:
        """And an image that is on a device already is not put on a second one."""
        disks = Disks.open(home / "work", hard=True, size=DISK)
        run = home / "work" / "run"
        disks.make(run, DISK)
        (disks.reach(run) / "kept").write_text("kept")
        other = images.attach(run / "disk.img")
        assert os.fstat(other.device).st_rdev == os.fstat(disks._open[run].device).st_rdev
        (home / "link").symlink_to(home / "work")
        by_link = images.attach(home / "link" / "run" / "disk.img")
        assert os.fstat(by_link.device).st_rdev == os.fstat(other.device).st_rdev
        by_link.close()
        disks.close()
        again = Disks.open(home / "work", hard=True, size=DISK)
        assert (again.reach(run) / "kept").read_text() == "kept"
        other.close()
        again.close()
        assert loops_of(home) == []

    def test_what_the_machine_could_not_keep_is_told(self, home: Path) -> None:
        """Whoever writes to an image is not told that the disk below it is full."""
        work = home / "work"
        work.mkdir()
        linux.mount("tmpfs", str(work), "tmpfs", options="size=8m")
        try:
            disks = Disks(work, hard=True)
            disks._shelf.mkdir()
            run = work / "run"
            disks.make(run, DISK)
            (disks.reach(run) / "small").write_bytes(b"fits")
            disks.write_out(run)
            (disks.reach(run) / "large").write_bytes(b"x" * 20 * MIB)
            with pytest.raises(OSError, match=r"No space|Input/output"):
                disks.write_out(run)
            disks.close()
        finally:
            assert linux.take_place(str(work))

    def test_a_copy_that_does_not_fit_is_told(self, home: Path) -> None:
        template, small = home / "template", home / "small"
        images.make(template, DISK, journal=False)
        images.make(small, images.SMALLEST, journal=False)
        attached = images.attach(small, fresh=True)
        try:
            with (attached.folder / "all").open("wb", buffering=0) as filling:
                for size in (2**20, 4096):  # the last blocks, too
                    with contextlib.suppress(OSError):
                        while filling.write(bytes(size)) == size:
                            os.fsync(filling.fileno())
            with pytest.raises(OSError, match="No space"):
                images.copy(template, attached.folder / "copy")
        finally:
            attached.close()


class TestVolumes:
    @pytest.fixture
    def places(self, home: Path, disks: Disks) -> storage.VolumePlaces:
        folders = storage.Folders(home / "volumes", remove, gid=59_999 if os.geteuid() == 0 else None)
        return VolumeImages(folders) if disks.hard else folders

    @pytest.fixture
    def mount(self, places: storage.VolumePlaces) -> Callable[[Volume], VolumeMount]:
        def mounted(volume: Volume) -> VolumeMount:
            place = places.place(volume.namespace, volume.name)
            return VolumeMount(place.source, "/data", place.gid, size=volume.size)

        return mounted

    async def test_one_that_lost_its_image_is_told_and_is_no_empty_folder(
        self,
        places: storage.VolumePlaces,
        mount: Callable[[Volume], VolumeMount],
        disks: Disks,
        home: Path,
        host: LocalJobHost,
    ) -> None:
        if not disks.hard:
            pytest.skip("a plain folder is all there is")
        volume = self.volume()
        await places.make(volume)
        [image] = (home / "volumes").rglob("*.img")
        kept = image.rename(home / "kept.img")
        await places.load([volume])  # as at the next start
        assert places.standing("ns", "models").phase == "Lost"
        outcome = await host.run(replace(order("ls /data"), mounts=(mount(volume),)))
        assert not outcome.succeeded
        assert "lost its contents" in outcome.reason
        kept.rename(image)
        assert places.standing("ns", "models").phase == "Bound"
        assert (await host.run(replace(order("ls /data"), mounts=(mount(volume),)))).succeeded
        await places.remove("ns", "models")
        assert places.standing("ns", "models").phase == "Bound"

    @staticmethod
    def volume(name: str = "models") -> Volume:
        return Volume("ns", name, "alice", 32 * MIB, "", "retain", 0.0)

    async def test_it_holds_its_size_and_no_more(
        self,
        host: LocalJobHost,
        home: Path,
        places: storage.VolumePlaces,
        mount: Callable[[Volume], VolumeMount],
        disks: Disks,
    ) -> None:
        volume = self.volume()
        await places.make(volume)
        mounts = (mount(volume),)
        assert (await host.run(order("head -c 4M /dev/zero > /data/first", mounts=mounts, disk=DISK))).succeeded
        fill = f"cd /data; {ATTACKS['many-files']}"
        outcome = await host.run(order(fill, mounts=mounts, disk=DISK))
        assert not outcome.succeeded
        assert taken(home) < (80 * MIB if disks.hard else BOUND)
        clearing = order("ls /data/first && rm /data/f?* && echo new > /data/new", mounts=mounts, disk=DISK)
        assert (await host.run(clearing)).succeeded
        await places.remove("ns", "models")
        assert not Path(mounts[0].source).exists()
        assert image_of(Path(mounts[0].source)) is None

    async def test_two_runs_see_the_same(
        self, host: LocalJobHost, logs: LogBook, places: storage.VolumePlaces, mount: Callable[[Volume], VolumeMount]
    ) -> None:
        volume = self.volume()
        await places.make(volume)
        mounts = (mount(volume),)
        waiting = order("while [ ! -e /data/word ]; do sleep 0.05; done; cat /data/word", mounts=mounts, seconds=30)
        running = asyncio.create_task(host.run(waiting))
        async with asyncio.timeout(20):
            while not (await logs.read(waiting.name, timestamps=False) or running.done() or host._turns):
                await asyncio.sleep(0.02)
        assert (await host.run(order("echo hello > /data/word", mounts=mounts))).succeeded
        assert (await running).succeeded
        assert "hello\n" in await log_of(logs, waiting.name)

    async def test_one_that_was_a_folder_before_stays_one(
        self, host: LocalJobHost, home: Path, mount: Callable[[Volume], VolumeMount], places: storage.VolumePlaces
    ) -> None:
        volume = self.volume("old")
        folders = storage.Folders(home / "volumes", remove, gid=59_999 if os.geteuid() == 0 else None)
        await folders.make(volume)
        (folders.path_of("ns", "old") / "kept").write_text("kept")
        await places.load([volume])
        mounts = (mount(volume),)
        assert (await host.run(order("cat /data/kept && echo more > /data/more", mounts=mounts))).succeeded
        outcome = await host.run(order(f"cd /data; {ATTACKS['many-files']}", mounts=mounts))
        assert "disk" in outcome.reason

    @images_only
    @pytest.mark.parametrize("kind", ["image", "folder"])
    @pytest.mark.parametrize("from_before", [False, True])
    async def test_other_ids_for_jobs_shut_nobody_out(
        self, host: LocalJobHost, logs: LogBook, home: Path, disks: Disks, kind: str, from_before: bool
    ) -> None:
        """The operator changed `sandbox.uid_base`, and with it the group that volumes belong to."""
        if kind == "image" and not disks.hard:
            pytest.skip("images are for those who can mount them")
        volume = self.volume()

        def opened(gid: int) -> storage.VolumePlaces:
            folders = storage.Folders(home / "volumes", remove, gid=gid)
            return VolumeImages(folders) if kind == "image" else folders

        def asked(script: str, places: storage.VolumePlaces) -> RunOrder:
            place = places.place("ns", "models")
            return order(script, mounts=(VolumeMount(place.source, "/data", place.gid, size=volume.size),))

        before = opened(59_999)
        await before.make(volume)
        if kind == "image":  # deeper than a careless walk would go; whoever is watched may not do that
            dig = f"cd /data; for each in {' '.join(['d'] * 1500)}; do mkdir d && cd d || exit 1; done"
            assert (await host.run(asked(dig, before))).succeeded
        script = "mkdir -p /data/a/b && echo one > /data/a/b/x && ln -s /etc/passwd /data/link"
        assert (await host.run(asked(script, before))).succeeded
        if from_before:  # of an earlier version, which noted no group
            for note in (home / "volumes" / ".with-image").rglob("models"):
                note.write_text("")
        after = opened(58_888)
        await after.load([volume])
        job = asked("cat /data/a/b/x && echo two >> /data/a/b/x && touch /data/a/b/new && rm /data/link", after)
        outcome = await host.run(job)
        assert outcome.succeeded, await log_of(logs, job.name)
        assert os.stat("/etc/passwd").st_gid == 0
        await after.load([volume])
        assert (await host.run(asked("cat /data/a/b/new", after))).succeeded

    @images_only
    async def test_a_manager_that_cannot_mount_it_says_so(self, home: Path, engine: Engine, logs: LogBook) -> None:
        volume, folders = self.volume(), storage.Folders(home / "volumes", remove, gid=59_999)
        await VolumeImages(folders).make(volume)
        mount = VolumeMount(str(folders.path_of("ns", "models")), "/data", 59_999, size=volume.size)
        soft = LocalJobHost(replace(engine, disks=Disks(home / "work")), logs)
        outcome = await soft.run(order("true", mounts=(mount,)))
        assert "cannot be mounted here" in outcome.reason


def test_taking_a_place_that_is_none_is_fine(tmp_path: Path) -> None:
    assert not linux.take_place(str(tmp_path))
