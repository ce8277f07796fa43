"""What does the embedded store keep of a bucket? `SeaweedBooks` has the filer tell every entry below it.

S3's listing shows the size of objects only. SeaweedFS takes up to a mebibyte of metadata with each, and keeps it, like
names, folders and uploads that were begun, as entries of its filer: they take room, so they count.

The filer walks the folders by itself. It tells entries as it reads them, and keeps only the paths of folders that it
has yet to come to (https://github.com/seaweedfs/seaweedfs/pull/9814; older ones keep every entry). Asking for each
folder from here would take ten times as long where there are many."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from hansa.drivers.s3.errors import StoreUnreachable
from hansa.drivers.s3.seaweed_rpc import MESSAGES, Filer, stream
from hansa.kernel.errors import NotFound
from hansa.storage import MOST_COUNTED, Contents

_BUCKETS = "/buckets/"
_UPLOADS = ".uploads"
_MOST_BESIDE = 256 * 2**20  # bytes of entries that are read for one count: a kibibyte for each of the most objects
_MOST_PATHS = 64 * 2**20  # bytes of folders' paths, which weed keeps while it walks
_PATIENCE = 120.0  # seconds; some 15000 entries are told in one
_MISSING = "no entry is found"  # weed has no code for it


class SeaweedBooks:
    """The `BucketBooks` port for the embedded store."""

    def __init__(self, filer: Filer) -> None:
        self._filer = filer

    async def contents(self, bucket: str) -> Contents:
        count = Count(_BUCKETS + bucket)
        async with aclosing(self.told(bucket)) as told:
            async for found in told:
                count.add(found.directory, found.entry)
                if count.too_much:
                    break
        return count.contents()

    async def told(self, bucket: str) -> AsyncGenerator[Any, None]:
        """The bucket itself and every entry below it, each with its folder; read from the store as they are taken."""
        async with self._filer.channel() as channel:
            call = stream(channel, "/filer_pb.SeaweedFiler/TraverseBfsMetadata", "Traversal", "Found")(
                MESSAGES["Traversal"](directory=_BUCKETS + bucket), timeout=_PATIENCE
            )
            try:
                async for found in call:
                    yield found
            except grpc.aio.AioRpcError as error:
                if _MISSING in (error.details() or ""):
                    raise NotFound(f"there is no bucket {bucket}") from error
                raise StoreUnreachable(
                    f"the store does not tell what is in a bucket: {error.code().name}",
                    hint="check that the embedded object store runs",
                ) from error
            finally:
                call.cancel()


def weight_of(entry: Any) -> int:
    """Bytes that an entry takes beside its content; fields that we have no name for are weighed too."""
    return int(entry.ByteSize())


@dataclass(slots=True)
class Count:
    root: str
    size: int = 0
    objects: int = 0
    unfinished: int = 0
    beside: int = 0
    entries: int = 0
    paths: int = 0

    def add(self, folder: str, entry: Any) -> None:
        if not f"{folder}/".startswith(f"{self.root}/"):  # the bucket itself
            return
        self.entries += 1
        self.beside += weight_of(entry)
        if entry.is_directory:
            self.paths += len(f"{folder}/{entry.name}".encode())
        if f"{folder}/".startswith(f"{self.root}/{_UPLOADS}/"):
            self.unfinished += entry.attributes.file_size
        elif not entry.is_directory:
            self.size += entry.attributes.file_size
            self.objects += 1
        elif entry.attributes.mime:  # a key that ends with "/"
            self.objects += 1

    @property
    def too_much(self) -> bool:
        return self.entries > MOST_COUNTED or self.beside > _MOST_BESIDE or self.paths > _MOST_PATHS

    def contents(self) -> Contents:
        return Contents(self.size, self.objects, not self.too_much, self.unfinished, self.beside)
