"""What the storage room needs from the outside: a place for objects, its users, and news of uploads.

`drivers/s3` implements all three for the embedded SeaweedFS, for MinIO and for plain S3.
"""

import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from hansa.storage.contents import Contents
from hansa.storage.reach import Reach

# What every S3 signature can carry: the access key stands between "/" and "," in the Authorization header,
# and MinIO asks for three characters and refuses "=" and ",".
_CARRIED = re.compile(r"[A-Za-z0-9][A-Za-z0-9@:|._~!*+-]{2,127}")
# Keys we make ourselves; nobody gets at one by a subject that begins like it.
_OURS = re.compile(r"(uid|service|hansa)-", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where clients reach the store, as `/system/config` tells them."""

    endpoint: str
    region: str
    verify: bool

    def with_keys(self, keys: "Keys") -> dict[str, str]:
        """As a provider of storage in a service's definition."""
        return {
            "endpoint": self.endpoint,
            "region": self.region,
            "verify": str(self.verify).lower(),
            "access_key": keys.access_key,
            "secret_key": keys.secret_key,
            **({"session_token": keys.session_token} if keys.session_token else {}),
        }


@dataclass(frozen=True, slots=True)
class Keys:
    access_key: str
    secret_key: str
    session_token: str = ""  # what belongs to keys that a store made for a while

    @classmethod
    def of_user(cls, uid: str, secret_key: str) -> "Keys":
        """The access key is the user's id itself, as OSCAR's clients expect; an id that a signature cannot
        carry (a URL, a name with spaces) or that looks like a key of ours gets a derived one, the same every time."""
        if _CARRIED.fullmatch(uid) and not _OURS.match(uid):
            return cls(uid, secret_key)
        return cls("uid-" + hashlib.sha256(uid.encode()).hexdigest()[:40], secret_key)

    @property
    def well_formed(self) -> bool:
        return _CARRIED.fullmatch(self.access_key) is not None and len(self.secret_key) >= 8

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
    by: str = ""  # the access key of who uploaded, where the store tells


@dataclass(frozen=True, slots=True)
class StoreNews:
    """One step of the store's change stream: `cursor` is where to go on from; `upload` is None for other
    changes. `written` bytes and `added` objects came to the bucket `changed`, parts of unfinished uploads and metadata
    included; 0 if some went."""

    cursor: int
    upload: Upload | None
    changed: str = ""
    written: int = 0
    added: int = 0


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
        """With everything in it; a missing bucket is fine. Raises `BucketBusy` when a large one is not empty in time:
        the next call goes on."""
        ...

    async def list(
        self, bucket: str, prefix: str = "", page: str = "", limit: int = 1000, *, brief: bool = False
    ) -> ObjectPage:
        """`brief`: one short try, for somebody who waits, beside what the manager does by itself."""
        ...

    async def unfinished(self, bucket: str, most: int) -> int | None:
        """Bytes in parts of large uploads that were begun and not completed, which no listing shows; None if more
        than `most` such uploads are there, or some that nobody can look into."""
        ...

    async def head(self, bucket: str, key: str) -> ObjectInfo: ...
    async def put(self, bucket: str, key: str, data: bytes, content_type: str = "") -> None: ...
    async def get(self, bucket: str, key: str) -> bytes: ...
    async def upload(self, bucket: str, key: str, source: Path) -> None:
        """Large files go in parts, several at once; the time grows with the size."""
        ...

    async def download(self, bucket: str, key: str, target: Path) -> None:
        """`target` appears whole or not at all."""
        ...

    async def delete(self, bucket: str, key: str) -> None:
        """A missing object is fine."""
        ...

    async def presign(
        self,
        bucket: str,
        key: str,
        operation: Literal["upload", "download"],
        seconds: int,
        content_type: str = "",
        keys: Keys | None = None,
    ) -> str:
        """A URL that works without keys for 1 to 604800 seconds, and only while whoever's `keys` signed it (the
        store's own unless given) may do the same. An upload must then carry `content_type`; a download is answered
        with it."""
        ...

    async def close(self) -> None: ...


class BucketBooks(Protocol):
    """What a store itself has written down of a bucket: more than its listing shows, and all of it takes room."""

    async def contents(self, bucket: str) -> Contents:
        """Everything in the bucket, or `complete=False` for one that holds more than can be counted."""
        ...


class StoreUsers(Protocol):
    """The store's own users, so that each person reaches only their buckets. A user is named by the access
    key (`Keys.of_user`); every call may be repeated."""

    async def ensure_user(self, keys: Keys) -> None:
        """The user named and keyed by `keys` exists; a new one may do nothing but use the published
        buckets."""
        ...

    async def grant(self, user: str, buckets: frozenset[str], full: frozenset[str] = frozenset()) -> None:
        """The user may list, read, write and delete in exactly these buckets (and the published ones), but not write
        into those of them that are `full`."""
        ...

    async def publish(self, buckets: frozenset[str], full: frozenset[str] = frozenset()) -> None:
        """All users may use exactly these buckets besides their own, but not write into those that are `full`."""
        ...

    async def remove_user(self, user: str) -> None:
        """With the keys and the grants; a missing user is fine."""
        ...

    async def close(self) -> None: ...


class Closable(Protocol):
    """A store that can be shut for all people at once. The administrator, and runs with loans, are let in as before."""

    async def close_to_people(self, closed: bool) -> None:
        """Nobody can add anything to any bucket, or everybody may do again what they were granted."""
        ...


class Loans(Protocol):
    """Keys that reach exactly what one run may touch, for as long as it lives. Every call may be repeated."""

    def new_name(self) -> str:
        """A name for a loan that ends with this life of the manager. Some of what `lend` makes may be there already,
        so whoever took a name calls `end`, also without a loan."""
        ...

    async def lend(self, name: str, reach: Reach) -> Keys:
        """The keys of the loan with this name; they open `reach`, and nothing else, when this returns."""
        ...

    async def end(self, name: str) -> None:
        """Whatever was signed with its keys is refused from now on. A loan that never was is fine."""
        ...

    async def end_others(self, alive: frozenset[str]) -> int:
        """Ends all loans but these, such as a manager that died left behind; how many."""
        ...

    async def close(self) -> None: ...


class RunKeys(Protocol):
    """Keys that were lent to runs, as far as buckets are concerned. Neither fails when the store is away: they end then
    as soon as it is back."""

    async def shut(self, bucket: str) -> None:
        """Ends all that open this bucket."""
        ...

    async def shut_out(self, bucket: str) -> None:
        """Ends those that open this bucket for somebody who may not use it any more."""
        ...


class LoanEnds(Protocol):
    """Which loans should have ended, and have not. Durable when it returns."""

    async def add(self, name: str, now: float) -> None:
        """One that is there is fine."""
        ...

    async def remove(self, name: str) -> None: ...
    async def all(self) -> Sequence[str]: ...


class UploadSource(Protocol):
    """News of uploads. Not every store can replay all of it, so a reconciliation listing always stands
    beside it."""

    def follow(self, cursor: int | None) -> AbstractAsyncContextManager[AsyncIterator[StoreNews]]:
        """Subscribed once entered. From `cursor` on, or from now when it is None. Raises `Temporary` when
        cut."""
        ...


class Notifications(Protocol):
    """Stores that call us back (MinIO): where, and about what. The embedded store needs none of it."""

    async def announce(self, caller: str, url: str, token: str) -> bool:
        """From now on the store posts to `url`, with `token` as bearer, what it is asked to tell `caller`, which is one
        word. Whether that is news to it: then it cost a moment in which the store did not answer."""
        ...

    async def listen(self, caller: str, bucket: str, wanted: bool) -> bool:
        """Whether `caller` hears of uploads to this bucket: of all, for what tenants call their folders is nothing that
        a store should have to match. Not twice at once for one bucket. Whether that is another order than the store
        had; of a missing bucket there is nothing to tell."""
        ...

    async def close(self) -> None: ...
