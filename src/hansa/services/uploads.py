"""An upload to a service's input folder starts a job: once, whatever happens to the store, the stream or us.

Two sources tell of uploads: the store's stream (quick, but not every store replays all of it after a crash) and a
listing of the folders (slow, but complete). Both end in one ledger that lets each object version become one job.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass

import structlog

from hansa.kernel.errors import HansaError, NotFound
from hansa.services import bucket_owners, submission
from hansa.services.errors import QueueFull
from hansa.services.lanes import Lanes
from hansa.services.listening import Listening
from hansa.services.ports import Record
from hansa.services.room import Room
from hansa.services.stream_position import StreamPosition
from hansa.storage import ObjectPage, StoreNews, Upload, UploadSource

_log = structlog.get_logger("hansa.uploads")
_CURSOR = "uploads"
_CURSOR_EVERY = 1.0  # seconds; what is read twice after a crash is already in the ledger
_FORGET_AFTER = 60.0
_RETRY = (0.2, 0.5, 1.0, 2.0, 5.0)
_STEADY = 10.0  # seconds; a stream that lasted so long was no failed try
_LIST_AGAIN = 5.0  # seconds until a listing that failed is tried again, and its owner's next
_LISTINGS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Offer:
    """An upload that a service waits for, and where in the stream its news is open under which number."""

    service: str
    upload: Upload
    position: StreamPosition
    number: int


@dataclass(frozen=True, slots=True)
class Told:
    """What a store that calls us back says of an upload that a service waits for, and whose key it was done with."""

    service: str
    bucket: str
    key: str
    by: str


class UploadWatch:
    def __init__(
        self,
        room: Room,
        source: UploadSource | None,
        every: float,
        on_news: Callable[[StoreNews], None] = lambda news: None,
        most_waiting: int = 1000,
    ) -> None:
        """`on_news` hears every change the store tells of. Of the news for one owner's services at most `most_waiting`
        wait in memory; what comes beyond is found by a listing."""
        self._on_news = on_news
        self._room = room
        self._source = source
        self._every = every
        self._most_waiting = most_waiting
        self._saved_at = 0.0
        self._wake = asyncio.Event()
        self._look_now = False
        self._told: Callable[[str, Told], None] | None = None  # while `work` goes on
        self._listening = Listening()
        self._few = asyncio.Semaphore(_LISTINGS_AT_ONCE)

    def wake(self) -> None:
        """Somebody whose uploads wait has room for jobs again."""
        self._wake.set()

    def look_now(self) -> None:
        """There may be uploads anywhere that nobody told of."""
        self._look_now = True
        self._wake.set()

    @property
    def hears(self) -> bool:
        """Whether what is `told` becomes jobs now; else it waits for a listing."""
        return self._told is not None

    def told(self, bucket: str, key: str, by: str) -> None:
        """A store that calls us back tells of an upload, and whose key it was done with. It is an upload like those of
        a stream: whoever tells waits for nobody's jobs, and what becomes no job is found by a listing."""
        if self._told is None:
            self.look_now()
            return
        for record in self._listeners(bucket, key):
            self._told(record.service.owner, Told(record.service.name, bucket, key, by))

    async def work(self) -> None:
        """Follows the store until cancelled; after every gap the folders are listed."""

        async def look(service: str) -> None:
            if not await self._try_list(service):
                await asyncio.sleep(_LIST_AGAIN)
                self._ask_for(listings, [service])

        async def take(offer: Offer) -> None:
            if not await self._tried(offer.service, self._offer(offer.service, offer.upload)):
                self._ask_for(listings, [offer.service])  # which offers it once more
            offer.position.end(offer.number)

        async def hear(told: Told) -> None:
            if not await self._tried(told.service, self._hear(told)):
                self._ask_for(listings, [told.service])

        def put(owner: str, told: Told) -> None:
            if not hearing.put(owner, told):
                listings.put(owner, told.service)

        async with asyncio.TaskGroup() as tasks:
            listings = Lanes(tasks, look)
            hearing = Lanes(tasks, hear, self._most_waiting)
            self._told = put
            tasks.create_task(self._list_now_and_then(listings), name="uploads listing")
            if self._source is not None:
                # they outlive the stream: a job that is being written down must be heard of when it is
                offers = Lanes(tasks, take, self._most_waiting)
                tasks.create_task(self._follow_for_ever(self._source, offers, listings), name="uploads stream")

    async def _list_now_and_then(self, listings: Lanes[str]) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._every
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            self._wake.clear()
            everywhere, self._look_now = self._look_now or loop.time() >= due, False
            if not everywhere:
                self._ask_for(listings, list(self._room.uploads_waiting))
            else:
                self._ask_for_all(listings)
                due = loop.time() + self._every

    def _ask_for_all(self, listings: Lanes[str]) -> None:
        there = [record.service.name for record in self._room.records.all()]
        self._listening.forget_others(there)
        self._ask_for(listings, [*there, *self._room.uploads_waiting])

    def _ask_for(self, listings: Lanes[str], services: Iterable[str]) -> None:
        for name in services:
            record = self._room.records.get(name)
            if record is None or not self._listening.folders(record.service):
                self._settled(name)
            elif record.phase == "ready":
                listings.put(record.service.owner, name)

    def _settled(self, service: str) -> None:
        """Nothing of it waits any more."""
        self._room.uploads_waiting.pop(service, None)
        for item in ("uploads", "input folders"):
            self._room.complaints.passed(f"{item} of {service}")

    async def _follow_for_ever(self, source: UploadSource, offers: Lanes[Offer], listings: Lanes[str]) -> None:
        loop = asyncio.get_running_loop()
        tries = 0
        while True:
            began = loop.time()
            try:
                await self._follow(source, offers, listings)
            except HansaError as error:
                _log.info("the store's stream was cut", error=error.message)
            if loop.time() - began > _STEADY:
                tries = 0
            await asyncio.sleep(_RETRY[min(tries, len(_RETRY) - 1)])
            tries += 1

    async def _follow(self, source: UploadSource, offers: Lanes[Offer], listings: Lanes[str]) -> None:
        """Until the stream is cut. What is under way when we die is told again, for the cursor stays before it."""
        cursor = await self._room.uploads.cursor(_CURSOR)
        async with source.follow(cursor) as news:
            self._ask_for_all(listings)  # subscribed first, listed second: nothing falls in between
            await self._take(news, StreamPosition(cursor), offers, listings)

    async def _take(
        self, news: AsyncIterator[StoreNews], position: StreamPosition, offers: Lanes[Offer], listings: Lanes[str]
    ) -> None:
        """Waits for nobody's jobs: those of one owner must not hold up the news of others."""
        async for one in news:
            self._on_news(one)
            told = self._listeners(one.upload.bucket, one.upload.object.key) if one.upload is not None else []
            number = position.begin(one.cursor, len(told))
            for record in told:
                assert one.upload is not None
                owner, name = record.service.owner, record.service.name
                if not offers.put(owner, Offer(name, one.upload, position, number)):
                    position.end(number)
                    listings.put(owner, name)
            await self._save(position)

    async def _save(self, position: StreamPosition) -> None:
        now = self._room.clock.now()
        if now - self._saved_at >= _CURSOR_EVERY and position.done is not None:
            await self._room.uploads.move_cursor(_CURSOR, position.done)
            self._saved_at = now

    async def _hear(self, told: Told) -> None:
        try:
            found = await self._room.store.head(told.bucket, told.key)
        except NotFound:
            return  # deleted again
        await self._offer(told.service, Upload(told.bucket, found, by=told.by))

    async def _tried(self, service: str, offering: Awaitable[object]) -> bool:
        try:
            await offering
            return True
        except Exception as error:  # of one owner, and the others go on
            self._room.complaints.tell("an upload is no job yet", f"uploads of {service}", error, service=service)
            return False

    async def _offer(self, service: str, upload: Upload) -> bool:
        """Starts a job if the service waits for this object still; False if there is no room for it now."""
        record, found = self._room.records.get(service), upload.object
        if record is None or not self._waits_for(record, upload.bucket, found.key):
            return True
        try:
            job = await submission.submit_upload(
                self._room,
                record,
                bucket=upload.bucket,
                key=found.key,
                etag=found.etag,
                modified=int(found.modified),
                size=found.size,
                content_type=upload.content_type,
                uploader=self._uploader(upload),
            )
        except QueueFull as full:
            self._postpone(service, full)
            return False
        if job is not None:
            _log.info("upload", service=service, job=job.name, object=f"{upload.bucket}/{found.key}")
        return True

    def _uploader(self, upload: Upload) -> str:
        found = self._room.people.by_key(upload.by) if upload.by else None
        return found.uid if found else ""

    def _postpone(self, service: str, full: QueueFull) -> None:
        """It stays in its bucket, and the ledger does not know it: the next listing offers it again."""
        if service not in self._room.uploads_waiting:
            _log.warning("uploads wait", service=service, why=full.message)
        self._room.uploads_waiting[service] = full.message

    def _listeners(self, bucket: str, key: str) -> list[Record]:
        there = self._listening.of_bucket(bucket, self._room.records.all())
        return [record for record in there if self._waits_for(record, bucket, key)]

    def _waits_for(self, record: Record, bucket: str, key: str) -> bool:
        if record.phase != "ready" or key.endswith("/"):  # a folder marker
            return False
        prefixes = self._listening.folders(record.service).get(bucket, ())
        return key.startswith(prefixes) and self._reads(record, bucket)

    def _reads(self, record: Record, bucket: str) -> bool:
        """A bucket that was removed may be somebody else's now: a service gets what its owner may read today."""
        buckets = self._room.buckets
        meant = not bucket_owners.changed_hands(record, bucket, buckets.owner_of(bucket))
        return meant and buckets.may_use(record.service.owner, bucket)

    async def _try_list(self, service: str) -> bool:
        try:
            await self._list(service)
            return True
        except Exception as error:  # of one service, and the others go on
            self._room.complaints.tell(
                "input folders could not be listed", f"input folders of {service}", error, service=service
            )
            return False

    async def _list(self, service: str) -> None:
        """Finds uploads nobody told of or that had to wait, and forgets ledger rows of objects that are gone."""
        record = self._room.records.get(service)
        if record is None or record.phase != "ready":
            return
        folders = self._listening.folders(record.service)
        places = [(bucket, prefix) for bucket, prefixes in folders.items() for prefix in prefixes]
        if all([await self._list_folder(record, bucket, prefix) for bucket, prefix in places]):
            self._settled(service)

    async def _list_folder(self, record: Record, bucket: str, prefix: str) -> bool:
        """False if something in it has to wait."""
        if not self._reads(record, bucket):
            return True
        service = record.service.name
        has_room = True
        async with self._few:
            seen = await self._room.uploads.seen(service, bucket)
        there: set[tuple[str, str, int]] = set()
        page = ""
        started = self._room.clock.now()
        while True:
            try:
                listed = await self._page(bucket, prefix, page)
            except NotFound:
                return True  # the bucket was deleted by hand
            for found in listed.objects:
                version = (found.key, found.etag, int(found.modified))
                there.add(version)
                # those of one folder have one owner: when one has to wait, so do the others
                if version not in seen and has_room:
                    has_room = await self._offer(service, Upload(bucket, found))
            page = listed.next_page
            if not page:
                break
        # young rows stay: the listing may be older than what the stream told meanwhile
        gone = [
            (bucket, *version)
            for version in seen - there
            if version[0].startswith(prefix) and version[2] < started - _FORGET_AFTER
        ]
        await self._room.uploads.forget(service, gone)
        return has_room

    async def _page(self, bucket: str, prefix: str, page: str) -> ObjectPage:
        async with self._few:  # in the order of asking, so that everybody gets a turn
            return await self._room.store.list(bucket, prefix, page)
