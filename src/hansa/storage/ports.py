"""What the storage room needs from the outside: a place for objects, its users, and news of uploads.

`drivers/s3` implements all three for the embedded SeaweedFS, for MinIO and for plain S3.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where clients reach the store, as `/system/config` tells them."""

    endpoint: str
    region: str
    verify: bool


@dataclass(frozen=True, slots=True)
class Keys:
    access_key: str
    secret_key: str

    def __repr__(self) -> str:  # a secret never reaches a log by accident
        return f"Keys({self.access_key!r}, ***)"


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    key: str
    size: int
    etag: str  # without quotes
    modified: float  # seconds since the epoch; whole seconds, equal in listing and event


@dataclass(frozen=True, slots=True)
class ObjectPage:
    objects: tuple[ObjectInfo, ...]
    next_page: str  # "" when this is the last one


@dataclass(frozen=True, slots=True)
class Upload:
    """One object was created or overwritten."""

    bucket: str
    object: ObjectInfo
    content_type: str = ""
    principal: str = ""  # the uploader's access key, where the store tells
    source_ip: str = ""
    version_id: str = ""


@dataclass(frozen=True, slots=True)
class StoreNews:
    """One step of the store's change stream: `cursor` is where to go on from; `upload` is None for other changes."""

    cursor: int
    upload: Upload | None


class ObjectStore(Protocol):
    """Objects in buckets, with the identity the store was opened with. Missing things raise `NotFound`;
    an unreachable store raises `Temporary`. Every call is bounded in time and may be repeated."""

    address: StoreAddress

    async def check(self) -> None:
        """Answers quickly, or raises `Temporary`."""
        ...

    async def buckets(self) -> list[str]: ...
    async def create_bucket(self, bucket: str) -> bool:
        """False if it was there already."""
        ...

    async def delete_bucket(self, bucket: str) -> None:
        """With everything in it; a missing bucket is fine."""
        ...

    async def list(self, bucket: str, prefix: str = "", page: str = "", limit: int = 1000) -> ObjectPage: ...
    async def head(self, bucket: str, key: str) -> ObjectInfo: ...
    async def put(self, bucket: str, key: str, data: bytes, content_type: str = "") -> None: ...
    async def get(self, bucket: str, key: str) -> bytes: ...
    async def upload(self, bucket: str, key: str, source: Path) -> None: ...
    async def download(self, bucket: str, key: str, target: Path) -> None: ...
    async def delete(self, bucket: str, key: str) -> None: ...
    async def presign(
        self,
        bucket: str,
        key: str,
        operation: Literal["upload", "download"],
        seconds: int,
        content_type: str = "",
    ) -> str: ...


class StoreUsers(Protocol):
    """The store's own users, so that each person reaches only their buckets."""

    async def ensure_user(self, keys: Keys) -> None:
        """The user named and keyed by `keys` exists and may do nothing yet that was not granted."""
        ...

    async def grant(self, user: str, buckets: frozenset[str]) -> None:
        """The user may list, read, write and delete in exactly these buckets (and the published ones)."""
        ...

    async def publish(self, buckets: frozenset[str]) -> None:
        """All users may use exactly these buckets besides their own."""
        ...

    async def remove_user(self, user: str) -> None: ...


class UploadSource(Protocol):
    """News of uploads. Not every store can replay all of it, so a reconciliation listing always stands beside it."""

    def follow(self, cursor: int | None) -> AbstractAsyncContextManager[AsyncIterator[StoreNews]]:
        """Subscribed once entered. From `cursor` on, or from now when it is None. Raises `Temporary` when cut."""
        ...


class Notifications(Protocol):
    """Stores that call us back (MinIO): tell them where. The embedded store needs none of it."""

    async def register(
        self, service: str, url: str, token: str, bucket: str, prefixes: Mapping[str, str]
    ) -> None: ...
    async def unregister(self, service: str, buckets: frozenset[str]) -> None: ...
