"""An upload to a service's input folder starts a job: once, whatever happens to the store, the stream or us.

Two sources tell of uploads: the store's stream (quick, but not every store replays all of it after a crash) and a
listing of the folders (slow, but complete). Both end in one ledger that lets each object version become one job.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import structlog

from hansa.kernel.errors import HansaError, NotFound
from hansa.services import bucket_owners, creation, submission
from hansa.services.errors import QueueFull
from hansa.services.ports import Record
from hansa.services.room import Room
from hansa.storage import StoreNews, Upload, UploadSource

_log = structlog.get_logger("hansa.uploads")
_CURSOR = "uploads"
_CURSOR_EVERY = 1.0  # seconds; what is read twice after a crash is already in the ledger
_FORGET_AFTER = 60.0
_RETRY = (0.2, 0.5, 1.0, 2.0, 5.0)


class UploadWatch:
    def __init__(
        self,
        room: Room,
        source: UploadSource | None,
        every: float,
        on_news: Callable[[StoreNews], None] = lambda news: None,
    ) -> None:
        """`on_news` hears every change the store tells of."""
        self._on_news = on_news
        self._room = room
        self._source = source
        self._every = every
        self._saved_at = 0.0
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Somebody whose uploads wait has room for jobs again."""
        self._wake.set()

    async def work(self) -> None:
        """Follows the store until cancelled; after every gap the folders are listed."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._list_now_and_then(), name="uploads listing")
            if self._source is not None:
                tasks.create_task(self._follow_for_ever(self._source), name="uploads stream")

    async def _list_now_and_then(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._every
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._wake.wait()
            self._wake.clear()
            if loop.time() < due:
                await self._try_reconcile(frozenset(self._room.uploads_waiting))
            else:
                await self._try_reconcile()
                due = loop.time() + self._every

    async def _follow_for_ever(self, source: UploadSource) -> None:
        tries = 0
        while True:
            try:
                cursor = await self._room.uploads.cursor(_CURSOR)
                async with source.follow(cursor) as news:
                    await self.reconcile()  # subscribed first, listed second: nothing falls in between
                    tries = 0
                    await self._take(news)
            except HansaError as error:
                _log.info("the store's stream was cut", error=error.message)
            await asyncio.sleep(_RETRY[min(tries, len(_RETRY) - 1)])
            tries += 1

    async def _take(self, news: AsyncIterator[StoreNews]) -> None:
        async for one in news:
            self._on_news(one)
            if one.upload is not None:
                await self.offer(one.upload)
            now = self._room.clock.now()
            if now - self._saved_at >= _CURSOR_EVERY:
                await self._room.uploads.move_cursor(_CURSOR, one.cursor)
                self._saved_at = now

    async def offer(self, upload: Upload) -> bool:
        """Starts a job for every service that waits for this object; False if one has no room for it now."""
        found = upload.object
        if found.key.endswith("/"):
            return True  # a folder marker
        room_for_all = True
        for record in self._listeners(upload.bucket, found.key):
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
                )
            except QueueFull as full:
                self._postpone(record.service.name, full)
                room_for_all = False
                continue
            if job is not None:
                _log.info("upload", service=record.service.name, job=job.name, object=f"{upload.bucket}/{found.key}")
        return room_for_all

    def _postpone(self, service: str, full: QueueFull) -> None:
        """It stays in its bucket, and the ledger does not know it: the next listing offers it again."""
        if service not in self._room.uploads_waiting:
            _log.warning("uploads wait", service=service, why=full.message)
        self._room.uploads_waiting[service] = full.message

    def _listeners(self, bucket: str, key: str) -> list[Record]:
        return [
            record
            for record in self._room.records.all()
            if record.phase == "ready" and record.service.input
            for ours, folder in creation.input_folders(record.service)
            if ours == bucket and key.startswith(f"{folder}/") and self._reads(record, bucket)
        ]

    def _reads(self, record: Record, bucket: str) -> bool:
        """A bucket that was removed may be somebody else's now: a service gets what its owner may read today."""
        buckets = self._room.buckets
        meant = not bucket_owners.changed_hands(record, bucket, buckets.owner_of(bucket))
        return meant and buckets.may_use(record.service.owner, bucket)

    async def _try_reconcile(self, only: frozenset[str] | None = None) -> None:
        try:
            await self.reconcile(only)
        except HansaError as error:
            _log.warning("input folders could not be listed", error=error.message)

    async def reconcile(self, only: frozenset[str] | None = None) -> None:
        """Finds uploads nobody told of or that had to wait, and forgets ledger rows of objects that are gone. `only`
        names services whose folders are looked through."""
        waiting = self._room.uploads_waiting
        for gone in [name for name in waiting if self._room.records.get(name) is None]:
            del waiting[gone]
        for record in self._room.records.all():
            if record.phase != "ready" or (only is not None and record.service.name not in only):
                continue
            folders = creation.input_folders(record.service)
            if all([await self._reconcile_folder(record, bucket, folder) for bucket, folder in folders]):
                waiting.pop(record.service.name, None)

    async def _reconcile_folder(self, record: Record, bucket: str, folder: str) -> bool:
        """False if something in it has to wait."""
        if not self._reads(record, bucket):
            return True
        service = record.service.name
        has_room = True
        seen = await self._room.uploads.seen(service, bucket)
        there: set[tuple[str, str, int]] = set()
        page = ""
        started = self._room.clock.now()
        while True:
            try:
                listed = await self._room.store.list(bucket, f"{folder}/", page)
            except NotFound:
                return True  # the bucket was deleted by hand
            for found in listed.objects:
                version = (found.key, found.etag, int(found.modified))
                there.add(version)
                # those of one folder have one owner: when one has to wait, so do the others
                if version not in seen and has_room:
                    has_room = await self.offer(Upload(bucket, found))
            page = listed.next_page
            if not page:
                break
        # young rows stay: the listing may be older than what the stream told meanwhile
        gone = [
            (bucket, *version)
            for version in seen - there
            if version[0].startswith(f"{folder}/") and version[2] < started - _FORGET_AFTER
        ]
        await self._room.uploads.forget(service, gone)
        return has_room
