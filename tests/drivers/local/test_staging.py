"""Who moves the files of a run, and what could they do if they were taken over?"""

import asyncio
import contextlib
import os
import secrets
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from contracts.job_host import keys_of, uploaded
from contracts.orders import order
from hansa.drivers.local import sandbox
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.job_host import LocalJobHost
from hansa.drivers.local.job_logs import LogBook
from hansa.drivers.local.launch import CallOff, Ceiling, SandboxLost
from hansa.drivers.local.launcher import protocol
from hansa.drivers.local.runtime import HostRuntime
from hansa.drivers.local.staging import NotMoved, OwnStore, Staging
from hansa.drivers.runs.stager.plan import Plan, Store
from hansa.drivers.runs.stager.s3 import S3
from hansa.drivers.s3 import OpenStore
from hansa.kernel.errors import Forbidden, Temporary
from hansa.services import StorageIO, reach_of
from hansa.storage import NOTHING, Keys, Loans, ObjectStore, Reach
from real import parts
from real.gate import Gate, gate

pytest_plugins = ("real.object_store",)

PRYING = Path(__file__).with_name("prying")
ORDINARY_USER = 3_999_998
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can try both")
LEVELS = {
    "root": Ceiling(),
    "not root": Ceiling(cgroups=False, user=ORDINARY_USER),
}


@pytest.fixture(params=LEVELS)
async def taken_over(
    request: pytest.FixtureRequest, home: Path, uid_base: int, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[HostRuntime, Ceiling]]:
    parts.require("bubblewrap")
    monkeypatch.setattr(sandbox, "_FOLDERS", (sandbox._FOLDERS[0], str(PRYING)))
    home.chmod(0o755)
    ceiling = LEVELS[request.param]
    run_dir = home / "prying"
    run_dir.mkdir()
    if ceiling.user is not None:
        os.chown(run_dir, ceiling.user, ceiling.user)
    opened = await HostRuntime.open(
        instance=f"t-{secrets.token_hex(4)}", uid_base=uid_base + 256 * 60, run_dir=run_dir, ceiling=ceiling
    )
    yield opened, ceiling
    await opened.close()


@needs_root
async def test_a_stager_that_was_taken_over_finds_nothing_but_its_folder(
    taken_over: tuple[HostRuntime, Ceiling], engine: Engine, home: Path, uid_base: int
) -> None:
    runtime, ceiling = taken_over
    uid = uid_base + 7 if ceiling.user is None else ceiling.user
    workdir = engine.workdir("prying")
    await engine.prepare(order("true"), workdir, {})
    for folder in (workdir.output.parent, workdir.output, workdir.reach / "mount"):
        os.chown(folder, uid, uid)
    secret = home / "secret"
    secret.write_text("the manager's own")
    secret.chmod(0o644)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        facts = [f"secret:{secret}", f"data:{home}", f"pid:{os.getpid()}", f"port:{port}"]
        staging = replace(engine, runtime=runtime).staging(order("true"), workdir, lambda level, text: None)
        told = await staging._told("bring", Plan(mounted={fact: [0, 0] for fact in facts}))
    assert told["worked"] == []
    assert told["uid"] == uid
    assert (workdir.output / "mine").read_text() == "mine"


class Spendthrift:
    """In place of the launcher: the child it starts has been taken over, and gives a descriptor with every word."""

    def __init__(self, last: bytes) -> None:
        self._words = [b'{"say": ["INFO", "hello"]}', b'{"dial": 0}', b'{"sign": [0, "GET", "b", "k", {}, ""]}', last]

    async def stage(self, channel: socket.socket, folders: Sequence[int], tls: Sequence[bool]) -> CallOff:
        told = os.memfd_create("told")
        try:
            os.write(told, b'{"stored": 0}')
            for word in self._words:
                protocol.send(channel, word, [told, told, told])
            self._kept = channel.dup()
        finally:
            os.close(told)
        return self._call_off

    async def _call_off(self) -> None:
        self.close()

    def close(self) -> None:
        self._kept.close()


@pytest.mark.parametrize("last", [b'{"end": true}', b'{"what": 1}', b"[]", b"no JSON", b"[" * 99_999, b""])
async def test_descriptors_that_nobody_asked_for_are_closed(engine: Engine, last: bytes) -> None:
    workdir = engine.workdir("spending")
    await engine.prepare(order("true"), workdir, {})
    movers = Spendthrift(last)
    staging = replace(engine.staging(order("true"), workdir, lambda level, text: None), movers=movers)
    plan = Plan(stores=(Store("s3", "http://127.0.0.1:1"),))
    try:
        told = await staging._told("carry", plan)
        assert told == {"stored": 0}
    except SandboxLost:
        assert b"end" not in last
    movers.close()
    assert [path for path in Path("/proc/self/fd").iterdir() if "memfd:told" in target_of(path)] == []


def target_of(descriptor: Path) -> str:
    """Others may close theirs meanwhile."""
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        return ""


class TestWithoutLoans:
    """A store that lends no keys: each request is signed by the manager, after a look at what the run may touch."""

    @pytest.fixture
    def host(self, engine: Engine, home: Path) -> LocalJobHost:
        asking = replace(engine, own=replace(engine.own, loans=None))
        return LocalJobHost(asking, LogBook(home / "logs", limit=64 * 1024))

    async def test_files_come_and_go(self, host: LocalJobHost, store: ObjectStore, bucket: str) -> None:
        await store.put(bucket, "in/a.txt", b"a")
        await store.put(bucket, "data/d.txt", b"d")
        job = order(
            'cat "$INPUT_FILE_PATH" > "$TMP_OUTPUT_DIR/copy"; head -c 40m /dev/zero > "$TMP_OUTPUT_DIR/large"; '
            f"echo more >> /mnt/{bucket}/data/d.txt",
            event=uploaded(bucket, "in/a.txt"),
            output=(StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),),
            mount=StorageIO(storage_provider="minio.default", path=f"{bucket}/data"),
        )
        outcome = await host.run(job)
        assert outcome.succeeded, outcome.reason
        assert await store.get(bucket, "out/copy") == b"a"
        assert (await store.head(bucket, "out/large")).size == 40 * 2**20
        assert await store.get(bucket, "data/d.txt") == b"dmore\n"

    @pytest.mark.parametrize(
        ("method", "bucket", "key", "query", "granted"),
        [
            ("GET", "b", "in/a", {}, True),
            ("GET", "b", "in/b", {}, False),
            ("GET", "other", "in/a", {}, False),
            ("GET", "b", "in/a", {"acl": ""}, False),
            ("GET", "b", "out/x", {}, False),
            ("GET", "b", "data/x", {}, True),
            ("GET", "b", "", {"list-type": "2", "prefix": "data/"}, True),
            ("GET", "b", "", {"list-type": "2", "prefix": "in/"}, False),
            ("GET", "b", "", {"list-type": "2"}, False),
            ("GET", "b", "", {}, False),
            ("GET", "b", "", {"policy": ""}, False),
            ("PUT", "b", "out/x", {}, True),
            ("PUT", "b", "out/x", {"partNumber": "1", "uploadId": "u"}, True),
            ("PUT", "b", "out/x", {"acl": ""}, False),
            ("PUT", "b", "in/a", {}, False),
            ("PUT", "b", "", {}, False),
            ("POST", "b", "out/x", {"uploads": ""}, True),
            ("POST", "b", "out/x", {"delete": ""}, False),
            ("POST", "b", "", {"delete": ""}, False),
            ("DELETE", "b", "out/x", {"uploadId": "u"}, True),
            ("DELETE", "b", "out/x", {}, False),
            ("DELETE", "b", "", {}, False),
            ("HEAD", "b", "in/a", {}, False),
        ],
    )
    def test_only_what_moving_files_takes_is_signed(
        self, engine: Engine, method: str, bucket: str, key: str, query: dict[str, str], granted: bool
    ) -> None:
        reach = Reach(
            read=frozenset({("b", "in/a")}), write=frozenset({("b", "out/")}), share=frozenset({("b", "data/")})
        )
        staging = engine.staging(replace(order("true"), reach=reach), engine.workdir("x"), lambda level, text: None)
        signed = staging._signed(Store("s3", "http://store", asks=True), method, bucket, key, query, "digest")
        assert (signed is not None) is granted
        assert staging._signed(Store("s3", "http://store"), method, bucket, key, query, "digest") is None

    async def test_nothing_is_signed_for_a_right_that_was_lost(self, engine: Engine) -> None:
        """Files may move for hours, and a bucket change hands meanwhile."""
        may_use = True
        reading = order("true", event=uploaded("b", "in/a"))
        reading = replace(reading, reach=reach_of(reading, "anybody", lambda user, bucket: may_use))
        staging = engine.staging(reading, engine.workdir("x"), lambda level, text: None)
        store = Store("s3", "http://store", asks=True)
        assert staging._signed(store, "GET", "b", "in/a", {}, "digest") is not None
        may_use = False
        with pytest.raises(Forbidden, match="may not read bucket b"):
            staging._signed(store, "GET", "b", "in/a", {}, "digest")


@pytest.mark.parametrize("lends", [True, False])
async def test_a_right_that_was_lost_before_a_run_begins_brings_nothing(
    engine: Engine, store: ObjectStore, bucket: str, home: Path, lends: bool
) -> None:
    await store.put(bucket, "in/a.txt", b"somebody else's by now")
    may_use = True
    job = order('cat "$INPUT_FILE_PATH"', event=uploaded(bucket, "in/a.txt"))
    job = replace(job, reach=reach_of(job, "anybody", lambda user, bucket: may_use))
    may_use = False
    logs = LogBook(home / "logs", limit=64 * 1024)
    if not lends:
        engine = replace(engine, own=replace(engine.own, loans=None))
    outcome = await LocalJobHost(engine, logs).run(job)
    assert f"may not read bucket {bucket}" in outcome.reason
    assert "somebody else's" not in (await logs.read(job.name, timestamps=False) or "")


class Forgetful:
    """Loans of a store that forgot the first keys as soon as it had lent them."""

    def __init__(self, inner: Loans) -> None:
        self._inner, self.lent = inner, 0

    def new_name(self) -> str:
        return self._inner.new_name()

    async def lend(self, name: str, reach: Reach) -> Keys:
        keys = await self._inner.lend(name, reach)
        self.lent += 1
        if self.lent == 1:
            await self._inner.end(name)
        return keys

    async def end(self, name: str) -> None:
        await self._inner.end(name)

    async def end_others(self, alive: frozenset[str]) -> int:
        return await self._inner.end_others(alive)

    async def close(self) -> None:
        await self._inner.close()


async def test_keys_that_the_store_forgot_are_replaced(
    engine: Engine, store: ObjectStore, bucket: str, home: Path
) -> None:
    await store.put(bucket, "in/a.txt", b"a")
    assert engine.own.loans is not None
    forgetful = Forgetful(engine.own.loans)
    impatient = replace(engine, own=replace(engine.own, loans=forgetful), patience=0.5)
    job = order('cat "$INPUT_FILE_PATH"', event=uploaded(bucket, "in/a.txt"))
    outcome = await LocalJobHost(impatient, LogBook(home / "logs", limit=64 * 1024)).run(job)
    assert outcome.succeeded, outcome.reason
    assert forgetful.lent == 2


class Silent(Forgetful):
    """Loans of a store that is away for a while, whenever it is asked for keys."""

    def __init__(self, inner: Loans) -> None:
        super().__init__(inner)
        self.refusals: Counter[str] = Counter()

    async def lend(self, name: str, reach: Reach) -> Keys:
        self.refusals[name] += 1
        if self.refusals[name] <= 3:
            raise Temporary("could not lend keys: the store refuses the manager")
        return await self._inner.lend(name, reach)


async def test_a_run_waits_for_keys_however_long_it_takes(
    engine: Engine, store: ObjectStore, bucket: str, home: Path
) -> None:
    """A store that is away, or refuses the manager, is the cluster's trouble: it ends no job, and throws no output
    away."""
    await store.put(bucket, "in/a.txt", b"a")
    assert engine.own.loans is not None
    silent = Silent(engine.own.loans)
    impatient = replace(engine, own=replace(engine.own, loans=silent), patience=0.01)
    output = (StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),)
    job = order('cp "$INPUT_FILE_PATH" "$TMP_OUTPUT_DIR"', event=uploaded(bucket, "in/a.txt"), output=output)
    logs = LogBook(home / "logs", limit=64 * 1024)
    outcome = await LocalJobHost(impatient, logs).run(replace(job, moving=1.3))
    assert outcome.succeeded, outcome.reason
    assert list(silent.refusals.values()) == [4, 4]
    assert await keys_of(store, bucket) == ["in/a.txt", "out/a.txt"]
    said = await logs.read(job.name, timestamps=False) or ""
    assert "trying again until it works" in said


async def test_a_run_without_rights_gets_nothing(engine: Engine, store: ObjectStore, bucket: str, home: Path) -> None:
    """Whatever its definition and its event say."""
    await store.put(bucket, "in/a.txt", b"somebody's")
    wanting = order(
        'cp "$INPUT_FILE_PATH" "$TMP_OUTPUT_DIR"',
        event=uploaded(bucket, "in/a.txt"),
        output=(StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),),
    )
    host = LocalJobHost(engine, LogBook(home / "logs", limit=64 * 1024))
    outcome = await host.run(replace(wanting, reach=NOTHING))
    assert not outcome.succeeded
    assert "no right" in outcome.reason
    assert await keys_of(store, bucket) == ["in/a.txt"]


async def test_keys_of_a_run_reach_no_more_than_its_plan(
    engine: Engine, own_store: OwnStore, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way is lent what it takes, and everything has ended when the run has."""
    lent: list[tuple[str, Reach]] = []
    ended: list[str] = []
    loans = own_store.loans
    assert loans is not None
    lend, end = loans.lend, loans.end

    async def noting(name: str, reach: Reach) -> object:
        lent.append((name, reach))
        return await lend(name, reach)

    async def ending(name: str) -> None:
        ended.append(name)
        await end(name)

    monkeypatch.setattr(loans, "lend", noting)
    monkeypatch.setattr(loans, "end", ending)
    output = (StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),)
    job = order("true", event=uploaded(bucket, "in/gone"), output=output)
    workdir = engine.workdir(job.name)
    await engine.prepare(job, workdir, {})
    staging: Staging = engine.staging(job, workdir, lambda level, text: None)
    if os.geteuid() == 0:
        for folder in (workdir.input.parent, workdir.input, workdir.reach / "mount"):
            os.chown(folder, 60_000_000, 60_000_000)
    with pytest.raises(NotMoved, match="NoSuchKey"):
        await staging.bring()
    await staging.carry()
    async with asyncio.timeout(10):
        while len(ended) < 2:
            await asyncio.sleep(0.01)
    whole = reach_of(job, "anybody", lambda user, bucket: True)
    assert [reach for _, reach in lent] == [replace(whole, write=frozenset()), replace(whole, read=frozenset())]
    assert sorted(ended) == sorted(name for name, _ in lent)


class TestCutShort:
    """The manager, the launcher or the stager dies in the middle of an upload in parts."""

    @pytest.fixture
    def cut(self, engine: Engine, home: Path, store: ObjectStore) -> Iterator[tuple[LocalJobHost, Gate]]:
        """A host whose files come through a gate."""
        there = urlsplit(store.address.endpoint)
        assert there.hostname is not None
        assert there.port is not None
        with gate((there.hostname, there.port)) as between:

            async def dial(host: str, port: int, own: bool, whose: str) -> socket.socket:
                return await engine.dial("127.0.0.1", between.port, own, whose)

            yield LocalJobHost(replace(engine, dial=dial), LogBook(home / "logs", limit=64 * 1024)), between

    async def test_nothing_unfinished_stays_in_the_store(
        self, cut: tuple[LocalJobHost, Gate], object_store: OpenStore, store: ObjectStore, bucket: str
    ) -> None:
        host, between = cut
        output = (StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),)
        job = order('head -c 40m /dev/zero > "$TMP_OUTPUT_DIR/large"', output=output, disk=64 * 2**20)
        for _ in range(2):
            held = between.hold(f"PUT /{bucket}/out/large?partNumber=2")
            running = asyncio.create_task(host.run(job))
            try:
                await asyncio.to_thread(held.reached)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                held.release(lost=True)
            assert unfinished_uploads(object_store, bucket) == 1
        assert (await host.run(job)).succeeded
        assert unfinished_uploads(object_store, bucket) == 0
        assert (await store.head(bucket, "out/large")).size == 40 * 2**20

    @pytest.mark.parametrize(
        "note", ['{"store": 0, "bucket": "BUCKET", "key": "theirs", "begun": "BEGUN"}', "[" * 9999]
    )
    async def test_a_note_that_the_script_wrote_aborts_nothing_of_others(
        self, host: LocalJobHost, object_store: OpenStore, store: ObjectStore, bucket: str, note: str
    ) -> None:
        begun = asked(object_store, "POST", bucket, "theirs").partition("<UploadId>")[2].partition("<")[0]
        written = note.replace("BUCKET", bucket).replace("BEGUN", begun)
        output = (StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),)
        script = f"echo 1 > $TMP_OUTPUT_DIR/x; echo '{written}' > /job/.unfinished-upload"
        assert (await host.run(order(script, output=output))).succeeded
        assert await store.get(bucket, "out/x") == b"1\n"
        assert unfinished_uploads(object_store, bucket) == 1


def unfinished_uploads(opened: OpenStore, bucket: str) -> int:
    return asked(opened, "GET", bucket, "").count("<UploadId>")


def asked(opened: OpenStore, method: str, bucket: str, key: str) -> str:
    """What the store answers its owner about uploads in parts."""
    there, keys = opened.store.address, opened.keys
    at = urlsplit(there.endpoint)
    owners = S3(
        Store("s3", there.endpoint, there.region, access_key=keys.access_key, secret_key=keys.secret_key),
        lambda: socket.create_connection((at.hostname, at.port)),
    )
    with contextlib.closing(owners):
        return owners._ask(method, bucket, key, {"uploads": ""}).body.decode()


@needs_root
async def test_an_output_that_cannot_be_read_fails_the_move(engine: Engine, bucket: str) -> None:
    """Nothing is left out in silence: a result that is not stored is no success."""
    job = order("true", output=(StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),))
    workdir = engine.workdir(job.name)
    await engine.prepare(job, workdir, {})
    for folder in (workdir.output.parent, workdir.output):
        os.chown(folder, 60_000_000, 60_000_000)
    (workdir.output / "ours").touch(mode=0o600)  # not the script's to open
    with pytest.raises(NotMoved, match="ours cannot be read: Permission denied"):
        await engine.staging(job, workdir, lambda level, text: None).carry()


async def test_outputs_wait_for_room_in_the_store(engine: Engine, home: Path, store: ObjectStore, bucket: str) -> None:
    """The machine's disk is full: nothing is lost by that, and the log says why it takes so long."""
    logs, room = LogBook(home / "logs", limit=64 * 1024), asyncio.Event()
    crowded = replace(engine, own=replace(engine.own, has_room=room.is_set))
    output = (StorageIO(storage_provider="minio.default", path=f"{bucket}/out"),)
    job = order('echo 1 > "$TMP_OUTPUT_DIR/x"', output=output)
    running = asyncio.create_task(LocalJobHost(crowded, logs).run(job))
    try:
        async with asyncio.timeout(30):
            while "wait for room" not in (await logs.read(job.name, timestamps=False) or ""):
                assert not running.done()
                await asyncio.sleep(0.05)
            assert await keys_of(store, bucket) == []
            room.set()
            assert (await running).succeeded
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert await store.get(bucket, "out/x") == b"1\n"
