"""An upload to a service's input folder starts a job: once, whatever happens to the store, the stream or us.

Two sources tell of uploads: the store's stream (quick, but not every store replays all of it after a crash) and a
listing of the folders (slow, but complete). Both end in one ledger that lets each object version become one job.
"""

import asyncio
from collections.abc import AsyncIterator

import structlog

from hansa.kernel.errors import HansaError, NotFound
from hansa.services import creation, submission
from hansa.services.ports import Record
from hansa.services.room import Room
from hansa.storage import StoreNews, Upload, UploadSource

_log = structlog.get_logger("hansa.uploads")
_CURSOR = "uploads"
_CURSOR_EVERY = 1.0  # seconds; what is read twice after a crash is already in the ledger
_FORGET_AFTER = 60.0
_RETRY = (0.2, 0.5, 1.0, 2.0, 5.0)


class UploadWatch:
    def __init__(self, room: Room, source: UploadSource | None, every: float) -> None:
        self._room = room
        self._source = source
        self._every = every
        self._saved_at = 0.0

    async def work(self) -> None:
        """Follows the store until cancelled; after every gap the folders are listed."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._list_now_and_then(), name="uploads listing")
            if self._source is not None:
                tasks.create_task(self._follow_for_ever(self._source), name="uploads stream")

    async def _list_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            await self._try_reconcile()

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
            if one.upload is not None:
                await self.offer(one.upload)
            now = self._room.clock.now()
            if now - self._saved_at >= _CURSOR_EVERY:
                await self._room.uploads.move_cursor(_CURSOR, one.cursor)
                self._saved_at = now

    async def offer(self, upload: Upload) -> None:
        """Starts a job for every service that waits for this object."""
        found = upload.object
        if found.key.endswith("/"):
            return  # a folder marker
        for record in self._listeners(upload.bucket, found.key):
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
            if job is not None:
                _log.info("upload", service=record.service.name, job=job.name, object=f"{upload.bucket}/{found.key}")

    def _listeners(self, bucket: str, key: str) -> list[Record]:
        return [
            record
            for record in self._room.records.all()
            if record.phase == "ready" and record.service.input
            for ours, folder in creation.input_folders(record.service)
            if ours == bucket and key.startswith(f"{folder}/")
        ]

    async def _try_reconcile(self) -> None:
        try:
            await self.reconcile()
        except HansaError as error:
            _log.warning("input folders could not be listed", error=error.message)

    async def reconcile(self) -> None:
        """Finds uploads nobody told of, and forgets ledger rows of objects that are gone."""
        for record in self._room.records.all():
            if record.phase != "ready":
                continue
            for bucket, folder in creation.input_folders(record.service):
                await self._reconcile_folder(record, bucket, folder)

    async def _reconcile_folder(self, record: Record, bucket: str, folder: str) -> None:
        service = record.service.name
        seen = await self._room.uploads.seen(service, bucket)
        there: set[tuple[str, str, int]] = set()
        page = ""
        started = self._room.clock.now()
        while True:
            try:
                listed = await self._room.store.list(bucket, f"{folder}/", page)
            except NotFound:
                return  # the bucket was deleted by hand
            for found in listed.objects:
                version = (found.key, found.etag, int(found.modified))
                there.add(version)
                if version not in seen:
                    await self.offer(Upload(bucket, found))
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
