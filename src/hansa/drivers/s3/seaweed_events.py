"""What was uploaded to the embedded store? `SeaweedEvents` follows the filer's stream of metadata changes.

SeaweedFS tells of every change of an entry; `news_of` finds the object uploads among them, with the same
etag and modification second that a listing shows. The stream replays from a cursor, but not what was
written in the seconds before weed was killed (its log is kept in memory for up to a minute): a
reconciliation listing after each reconnect is part of the design. It does not tell who uploaded: attribute
uploads by the bucket's owner."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from hansa.drivers.s3.errors import StoreUnreachable
from hansa.drivers.s3.seaweed_books import weight_of
from hansa.drivers.s3.seaweed_rpc import MESSAGES, Filer, stream
from hansa.storage import ObjectInfo, StoreNews, Upload

_BUCKETS = "/buckets/"
_HINT = "follow again from the last cursor once the embedded object store runs"


class SeaweedEvents:
    """The `UploadSource` port for the embedded store."""

    def __init__(self, filer: Filer, connect_seconds: float = 5.0) -> None:
        self._filer, self._connect_seconds = filer, connect_seconds

    @asynccontextmanager
    async def follow(self, cursor: int | None) -> AsyncIterator[AsyncIterator[StoreNews]]:
        # "From now" is a point in time of this machine's clock, which weed shares, so nothing that is
        # uploaded after entering is missed even though weed registers the subscription a moment later.
        since = time.time_ns() if cursor is None else cursor
        async with self._filer.channel() as channel:
            try:
                await asyncio.wait_for(channel.channel_ready(), self._connect_seconds)
            except TimeoutError as error:
                raise StoreUnreachable("the store's change stream does not answer", hint=_HINT) from error
            request = MESSAGES["Subscription"](
                client_name="hansa",
                path_prefix=_BUCKETS,
                since_ns=since,
                client_id=random.randrange(1, 2**31),  # a shared id would end an earlier subscription  # noqa: S311
                client_epoch=1,
            )
            call = stream(channel, "/filer_pb.SeaweedFiler/SubscribeMetadata", "Subscription", "Notice")(request)
            try:
                yield _told(call, after=since)
            finally:
                call.cancel()


async def _told(call: Any, after: int) -> AsyncIterator[StoreNews]:
    try:
        async for notice in call:
            if notice.ts_ns > after:  # weed begins with the change at the cursor itself
                yield news_of(notice)
    except grpc.aio.AioRpcError as error:
        raise StoreUnreachable(f"the store's change stream was cut: {error.code().name}", hint=_HINT) from error
    raise StoreUnreachable("the store's change stream ended", hint=_HINT)


def news_of(notice: Any) -> StoreNews:
    return StoreNews(notice.ts_ns, _upload_in(notice), *_change_in(notice))


def _change_in(notice: Any) -> tuple[str, int, int]:
    """Which bucket changed, and how many bytes, metadata included, and names came to it."""
    change = notice.event_notification
    folder = change.new_parent_path or notice.directory
    bucket = f"{folder}/".removeprefix(_BUCKETS).partition("/")[0] if f"{folder}/".startswith(_BUCKETS) else ""
    if bucket.startswith("."):  # weed's own
        return "", 0, 0
    entry = change.new_entry
    here = change.HasField("new_entry")
    added = int(here and not change.HasField("old_entry"))
    return bucket, entry.attributes.file_size + weight_of(entry) if here else 0, added


def _upload_in(notice: Any) -> Upload | None:
    change = notice.event_notification
    entry = change.new_entry
    if not change.HasField("new_entry") or entry.is_directory:  # a deletion; a folder or its marker
        return None
    path = f"{change.new_parent_path or notice.directory}/{entry.name}"
    bucket, _, key = path.removeprefix(_BUCKETS).partition("/")
    # ".system" and the like are weed's own; parts of an unfinished upload wait in ".uploads".
    if not path.startswith(_BUCKETS) or bucket.startswith(".") or not key or key.startswith(".uploads/"):
        return None
    if change.HasField("old_entry") and _content(change.old_entry) == _content(entry):  # tags or rights only
        return None
    extended = {pair.key: pair.value.decode(errors="replace") for pair in entry.extended}
    if "Seaweed-X-Amz-Delete-Marker" in extended:  # a deletion in a versioned bucket
        return None
    key = _without_version(key)
    attributes = entry.attributes
    etag = extended.get("Seaweed-X-Amz-ETag", "").strip('"') or attributes.md5.hex()
    return Upload(
        bucket,
        ObjectInfo(key, attributes.file_size, etag, float(attributes.mtime)),
        content_type=attributes.mime,
    )


def _content(entry: Any) -> tuple[object, ...]:
    """New content always means new chunk ids, even when it is the same content within the same second."""
    return entry.attributes.mtime, entry.attributes.md5, tuple(chunk.fid for chunk in entry.chunks)


def _without_version(key: str) -> str:
    """A versioned bucket keeps `k` as `k.versions/v_<id>`. (A plain key of that very form would be
    misread.)"""
    head, mark, tail = key.rpartition(".versions/v_")
    return head if mark and "/" not in tail else key
