"""Which buckets are there, and whose? All records in memory, written through to the database.

The manager is the only writer, so questions such as `may_use` cost no I/O. `Buckets` changes it.
"""

from collections.abc import Iterator, Sequence

from hansa.identity import ADMIN_UID
from hansa.storage.records import PUBLIC, RESTRICTED, Bucket, BucketRecords


class BucketRegister:
    def __init__(self, records: BucketRecords) -> None:
        self._records = records
        self._buckets: dict[str, Bucket] = {}
        self.full: set[str] = set()  # those that hold what they may, or more; `Fullness` finds them
        self.crowded = ""  # why nothing can be added to any bucket, in words; `Crowding` finds out

    async def load(self) -> None:
        self._buckets = {bucket.name: bucket for bucket in await self._records.all()}

    def get(self, name: str) -> Bucket | None:
        return self._buckets.get(name)

    def owner_of(self, name: str) -> str:
        """A uid, "cluster_admin", or "" for a bucket that is not ours."""
        bucket = self._buckets.get(name)
        return bucket.owner if bucket is not None else ""

    def __iter__(self) -> Iterator[Bucket]:
        return iter(sorted(self._buckets.values(), key=lambda bucket: bucket.name))

    def owned(self, uid: str) -> list[Bucket]:
        """What counts against the user's quota; one that is being removed as long as it is there."""
        return [one for one in self._buckets.values() if one.owner == uid]

    def may_use(self, uid: str, name: str) -> bool:
        if uid == ADMIN_UID:
            return True
        bucket = self._buckets.get(name)
        return bucket is not None and bucket.open_to(uid)

    def reach(self, uid: str) -> frozenset[str]:
        """The buckets the store must open to this user besides the public ones."""
        return frozenset(
            one.name
            for one in self._buckets.values()
            if one.phase != "deleting"
            and (one.owner == uid or (one.visibility == RESTRICTED and uid in one.allowed_users))
        )

    def public(self) -> frozenset[str]:
        return frozenset(
            one.name for one in self._buckets.values() if one.phase != "deleting" and one.visibility == PUBLIC
        )

    async def add(self, buckets: Sequence[Bucket]) -> None:
        await self._records.add(buckets)
        self._buckets.update((bucket.name, bucket) for bucket in buckets)

    async def replace(self, bucket: Bucket) -> None:
        await self._records.replace(bucket)
        self._buckets[bucket.name] = bucket

    async def remove(self, name: str) -> None:
        await self._records.remove(name)
        self._buckets.pop(name, None)
        self.full.discard(name)
