"""Does an upload become one job, and does nobody's flood of uploads hold up those of others?

Services, jobs and the ledger are real ones in a real database; the store and its stream say what a test tells them to,
so that one owner's part can be held at will.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hansa.identity import Vault
from hansa.kernel.errors import NotFound, Temporary
from hansa.services import Backlog, Job, Record, Room, Service, StorageIO, UploadWatch
from hansa.services.backlog import Share
from hansa.services.complaints import Complaints
from hansa.storage import ObjectInfo, ObjectPage, StoreNews, Upload
from hansa.store import Database, JobStore, ServiceStore, UploadLedger, make_engine, schema, sqlite_url

PATIENCE = 60.0


class Clock:
    """Each look is long after the one before."""

    def __init__(self) -> None:
        self._now = 1_000_000.0

    def now(self) -> float:
        self._now += 10
        return self._now


class Gates:
    """Holds what is done for some owners or buckets until they are opened."""

    def __init__(self) -> None:
        self._shut: dict[str, asyncio.Event] = {}
        self.waiting: Counter[str] = Counter()

    def shut(self, name: str) -> None:
        self._shut[name] = asyncio.Event()

    def open(self, name: str) -> None:
        self._shut.pop(name).set()

    async def pass_through(self, name: str) -> None:
        if (gate := self._shut.get(name)) is not None:
            self.waiting[name] += 1
            await gate.wait()


@dataclass
class Stream:
    """The `UploadSource` of the scene."""

    news: asyncio.Queue[StoreNews | None] = field(default_factory=asyncio.Queue)
    cursors: list[int | None] = field(default_factory=list)

    @asynccontextmanager
    async def follow(self, cursor: int | None) -> AsyncIterator[AsyncIterator[StoreNews]]:
        self.cursors.append(cursor)
        yield self._told()

    async def _told(self) -> AsyncIterator[StoreNews]:
        while (one := await self.news.get()) is not None:
            yield one
        raise Temporary("cut")


@dataclass
class Scene:
    database: Database
    gates: Gates = field(default_factory=Gates)
    stream: Stream = field(default_factory=Stream)
    objects: dict[str, list[ObjectInfo]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)  # of buckets
    tries: Counter[str] = field(default_factory=Counter)  # to write down a job, by service
    jobs: list[Job] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.records = ServiceStore(self.database, Vault([Vault.new_key()]))
        self.ledger = UploadLedger(self.database)
        self.store = JobStore(self.database)
        self.room = SimpleNamespace(
            records=self.records,
            uploads=self.ledger,
            jobs=self,
            store=self,
            buckets=SimpleNamespace(may_use=lambda uid, name: self.owners[name] == uid, owner_of=self.owners.get),
            clock=Clock(),
            dispatcher=SimpleNamespace(waiting=0, offer=lambda waiting: None, surely=nullcontext),
            backlog=Backlog(),
            limits=SimpleNamespace(queue_limit=10_000, share=Share(10_000, 2**30)),
            uploads_waiting={},
            complaints=Complaints(),
        )

    # What the room asks of jobs and of the store.

    async def accept_upload(self, job: Job, bucket: str, key: str, etag: str, modified: int) -> bool:
        self.tries[job.service] += 1
        await self.gates.pass_through(job.owner)
        fresh = await self.store.accept_upload(job, bucket, key, etag, modified)
        if fresh:
            self.jobs.append(job)
        return fresh

    async def get(self, name: str) -> Job | None:
        return await self.store.get(name)

    async def list(self, bucket: str, prefix: str, page: str) -> ObjectPage:
        await self.gates.pass_through(bucket)
        return ObjectPage(tuple(one for one in self.objects[bucket] if one.key.startswith(prefix)), "")

    async def head(self, bucket: str, key: str) -> ObjectInfo:
        await self.gates.pass_through(f"head of {bucket}")
        for one in self.objects[bucket]:
            if one.key == key:
                return one
        raise NotFound("no such object")

    # What tests do.

    async def service(self, name: str, owner: str, *paths: str) -> None:
        places = tuple(StorageIO(storage_provider="minio.default", path=path) for path in paths)
        for place in places:
            bucket = place.path.partition("/")[0]
            self.owners[bucket] = owner
            self.objects.setdefault(bucket, [])
        made = Service(name=name, image="debian", script="true", owner=owner, input=places)
        await self.records.add(Record(made, 1, "ready", False, (), 1.0, 1.0), {})

    def put(self, bucket: str, key: str) -> ObjectInfo:
        made = ObjectInfo(key, 1, "e", 1_000_000.0)
        self.objects[bucket].append(made)
        return made

    def tell(self, cursor: int, bucket: str, made: ObjectInfo) -> None:
        self.stream.news.put_nowait(StoreNews(cursor, Upload(bucket, made)))

    def count(self, service: str) -> int:
        return len([job for job in self.jobs if job.service == service])

    @asynccontextmanager
    async def watching(self, *, streams: bool = True, **options: Any) -> AsyncIterator[UploadWatch]:
        """With `streams` False the store calls back instead, which is done by `UploadWatch.told`."""
        source = self.stream if streams else None
        watch = UploadWatch(cast(Room, self.room), source, every=3600.0, **options)
        task = asyncio.create_task(watch.work())
        try:
            async with asyncio.timeout(PATIENCE):
                yield watch
        finally:
            task.cancel()
            await asyncio.wait([task])
        assert task.cancelled(), task.exception()

    async def until(self, so: Any) -> None:
        while not so():
            await asyncio.sleep(0.01)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    database = Database(engine, patience=PATIENCE)
    database.start()
    made = Scene(database)
    await made.service("alices", "alice", "hers/in")
    await made.service("bobs", "bob", "his/in")
    try:
        yield made
    finally:
        await database.close()


async def test_an_upload_does_not_wait_for_jobs_of_somebody_else(scene: Scene) -> None:
    scene.gates.shut("alice")
    async with scene.watching():
        await scene.until(lambda: scene.stream.cursors)
        for number in range(3):
            scene.tell(number + 1, "hers", scene.put("hers", f"in/{number}"))
        scene.tell(4, "his", scene.put("his", "in/x"))
        await scene.until(lambda: scene.count("bobs"))
        assert scene.count("alices") == 0
        scene.gates.open("alice")
        await scene.until(lambda: scene.count("alices") == 3)


async def test_news_are_taken_while_folders_are_listed(scene: Scene) -> None:
    scene.gates.shut("hers")
    missed = scene.put("hers", "in/missed")
    scene.put("his", "in/missed")
    async with scene.watching():
        await scene.until(lambda: scene.gates.waiting["hers"])
        await scene.until(lambda: scene.count("bobs") == 1)  # found, while the other listing hangs
        scene.tell(1, "his", scene.put("his", "in/told"))
        await scene.until(lambda: scene.count("bobs") == 2)
        scene.tell(2, "hers", missed)
        await scene.until(lambda: scene.count("alices") == 1)
        scene.gates.open("hers")
        scene.tell(3, "hers", scene.put("hers", "in/last"))
        await scene.until(lambda: scene.count("alices") == 2)
    assert scene.count("alices") == 2


async def test_an_upload_is_offered_once_however_many_inputs_it_matches(scene: Scene) -> None:
    nested = ["many/" + "/".join(["in"] * depth) for depth in range(1, 100)]
    await scene.service("many", "carol", *nested, *nested)
    async with scene.watching():
        await scene.until(lambda: scene.stream.cursors)
        # one is told of and may be listed before it is in the ledger, so it is looked at when nothing lists any more
        scene.tell(1, "his", scene.put("his", "in/x"))
        await scene.until(lambda: scene.count("bobs"))
        made = ObjectInfo("/".join(["in"] * 100), 1, "e", 1_000_000.0)
        for cursor in range(2, 5):
            scene.tell(cursor, "many", made)
        await scene.until(lambda: scene.tries["many"] == 3)
        scene.tell(5, "his", scene.put("his", "in/y"))
        await scene.until(lambda: scene.count("bobs") == 2)
    assert (scene.tries["many"], scene.count("many")) == (3, 1)


async def test_what_was_under_way_when_the_manager_died_is_told_again(scene: Scene) -> None:
    scene.gates.shut("alice")
    made = scene.put("hers", "in/x")
    async with scene.watching():
        await scene.until(lambda: scene.stream.cursors)
        scene.tell(1, "his", scene.put("his", "in/x"))
        await scene.until(lambda: scene.count("bobs") == 1)
        scene.tell(2, "hers", made)
        scene.tell(3, "his", scene.put("his", "in/y"))
        await scene.until(lambda: scene.count("bobs") == 2)
        scene.tell(4, "his", scene.put("his", "in/z"))
        await scene.until(lambda: scene.count("bobs") == 3)
    saved = await scene.ledger.cursor("uploads")
    assert saved is None or saved < 2
    scene.gates.open("alice")
    async with scene.watching():
        await scene.until(lambda: len(scene.stream.cursors) == 2)
        scene.tell(2, "hers", made)
        await scene.until(lambda: scene.count("alices") == 1)
        scene.tell(4, "his", scene.objects["his"][-1])
        scene.tell(5, "hers", scene.put("hers", "in/later"))
        await scene.until(lambda: scene.count("alices") == 2)
    assert (scene.count("alices"), scene.count("bobs")) == (2, 3)
    assert scene.stream.cursors == [None, saved]


async def test_a_stream_that_was_cut_goes_on_from_where_it_was(scene: Scene) -> None:
    async with scene.watching():
        scene.tell(1, "his", scene.put("his", "in/x"))
        await scene.until(lambda: scene.count("bobs") == 1)
        scene.tell(2, "his", scene.put("his", "in/y"))
        await scene.until(lambda: scene.count("bobs") == 2)
        scene.stream.news.put_nowait(None)
        await scene.until(lambda: len(scene.stream.cursors) == 2)
        scene.tell(3, "his", scene.put("his", "in/z"))
        await scene.until(lambda: scene.count("bobs") == 3)
    assert scene.count("bobs") == 3


async def test_a_job_that_is_written_down_while_the_stream_is_cut_is_heard_of(scene: Scene) -> None:
    offered: list[str] = []
    scene.room.dispatcher.offer = lambda waiting: offered.append(waiting.service)
    scene.gates.shut("alice")
    async with scene.watching():
        await scene.until(lambda: scene.stream.cursors)
        scene.tell(1, "hers", scene.put("hers", "in/x"))
        await scene.until(lambda: scene.gates.waiting["alice"])
        scene.stream.news.put_nowait(None)
        await scene.until(lambda: len(scene.stream.cursors) == 2)
        scene.gates.open("alice")
        await scene.until(lambda: offered)
    assert offered == ["alices"]


async def test_an_upload_that_could_not_become_a_job_is_offered_again(scene: Scene) -> None:
    good, fails = scene.accept_upload, iter([Temporary("the database is away"), RuntimeError("nobody thought of it")])

    async def accept(job: Job, *version: Any) -> bool:
        if job.owner == "alice" and (error := next(fails, None)) is not None:
            raise error
        return await good(job, *version)

    scene.room.jobs = SimpleNamespace(accept_upload=accept, get=scene.get)
    async with scene.watching():
        await scene.until(lambda: scene.stream.cursors)
        scene.tell(1, "hers", scene.put("hers", "in/x"))
        scene.tell(2, "his", scene.put("his", "in/x"))
        await scene.until(lambda: scene.count("alices") and scene.count("bobs"))
    assert (scene.count("alices"), scene.count("bobs")) == (1, 1)


async def test_what_is_too_much_to_remember_is_found_by_a_listing(scene: Scene) -> None:
    scene.gates.shut("alice")
    async with scene.watching(most_waiting=3):
        await scene.until(lambda: scene.stream.cursors)
        for number in range(20):
            scene.tell(number + 1, "hers", scene.put("hers", f"in/{number}"))
        scene.tell(21, "his", scene.put("his", "in/x"))
        await scene.until(lambda: scene.count("bobs"))
        scene.gates.open("alice")
        await scene.until(lambda: scene.count("alices") == 20)
    assert scene.count("alices") == 20


async def test_a_service_that_is_gone_gets_no_job_of_what_waited_for_it(scene: Scene) -> None:
    await scene.service("next", "alice", "hers/in")
    scene.gates.shut("alice")
    async with scene.watching():
        await scene.until(lambda: scene.stream.cursors)
        scene.tell(1, "hers", ObjectInfo("in/x", 1, "e", 1_000_000.0))
        await scene.until(lambda: scene.gates.waiting["alice"])
        await scene.records.remove("next")
        scene.gates.open("alice")
        await scene.until(lambda: scene.count("alices") == 1)
        scene.tell(2, "hers", ObjectInfo("in/y", 1, "e", 1_000_000.0))
        await scene.until(lambda: scene.count("alices") == 2)
    assert scene.tries["next"] == 0


async def test_a_listing_that_fails_is_tried_again(scene: Scene) -> None:
    good, fails = scene.list, iter([True])

    async def listing(bucket: str, prefix: str, page: str) -> ObjectPage:
        if bucket == "hers" and next(fails, False):
            raise Temporary("the store is away")
        return await good(bucket, prefix, page)

    scene.room.store = SimpleNamespace(list=listing)
    scene.put("hers", "in/x")
    async with scene.watching():
        await scene.until(lambda: scene.count("alices") == 1)


async def test_a_store_that_calls_back_waits_for_nobodys_jobs(scene: Scene) -> None:
    """It has few hands to call with, so one owner's flood would hold up everybody's news."""
    scene.gates.shut("alice")
    scene.gates.shut("head of hers")
    async with scene.watching(streams=False, most_waiting=3) as watch:
        await scene.until(lambda: watch.hears)
        for number in range(20):
            scene.put("hers", f"in/{number}")
            watch.told("hers", f"in/{number}", "key-of-alice")
        scene.put("his", "in/x")
        watch.told("his", "in/x", "")
        await scene.until(lambda: scene.count("bobs"))
        assert scene.count("alices") == 0
        scene.gates.open("head of hers")
        scene.gates.open("alice")
        await scene.until(lambda: scene.count("alices") == 20)  # most of them were found by a listing
    assert scene.count("alices") == 20


async def test_an_upload_told_of_that_becomes_no_job_is_found_by_a_listing(scene: Scene) -> None:
    good, fails = scene.head, iter([True])

    async def head(bucket: str, key: str) -> ObjectInfo:
        if next(fails, False):
            raise Temporary("the store is away")
        return await good(bucket, key)

    scene.room.store = SimpleNamespace(head=head, list=scene.list)
    async with scene.watching(streams=False) as watch:
        await scene.until(lambda: watch.hears)
        scene.put("hers", "in/x")
        watch.told("hers", "in/x", "")
        await scene.until(lambda: scene.count("alices"))
    assert scene.count("alices") == 1


async def test_an_upload_told_of_before_anybody_listens_is_found_by_a_listing(scene: Scene) -> None:
    scene.put("hers", "in/x")
    watch = UploadWatch(cast(Room, scene.room), None, every=3600.0)
    watch.told("hers", "in/x", "")
    task = asyncio.create_task(watch.work())
    try:
        async with asyncio.timeout(PATIENCE):
            await scene.until(lambda: scene.count("alices"))
    finally:
        task.cancel()
        await asyncio.wait([task])
