"""Whose are the buckets that a service means? Whoever's they were when the service's owner last wrote it. Pure.

A bucket that is deleted leaves its name to anybody. Whoever takes the name can let the former owner in, so that a right
to use a bucket does not say that it is still the bucket that was meant.
"""

from collections.abc import Iterable, Mapping

from hansa.services.ports import Record
from hansa.storage import Bucket

_MOST_TOLD = 8  # warnings in one answer: some clients read no answer with a hundred headers


def changed_hands(record: Record, bucket: str, owner: str) -> bool:
    """Is this bucket, now of `owner` ("" if it is nobody's), another one than the service's owner meant? What came to
    that owner is theirs. A service that was written before owners were noted knows nothing of it."""
    meant = record.bucket_owners.get(bucket)
    return meant is not None and owner not in ("", meant, record.service.owner)


def noted(buckets: Iterable[Bucket], before: Mapping[str, str], *, by_owner: bool) -> dict[str, str]:
    """By name, for a service that is written now. What somebody else than its owner writes consents to nothing: what
    was known `before` stays."""
    now = {bucket.name: bucket.owner for bucket in buckets}
    return now if by_owner else {name: before.get(name, owner) for name, owner in now.items()}


def warnings(owner: str, written: Iterable[Bucket]) -> tuple[str, ...]:
    """What the owner of a service should know of the buckets that it writes to."""
    others = [bucket for bucket in written if bucket.owner != owner]
    told = [_warning(bucket) for bucket in others[:_MOST_TOLD]]
    if more := len(others) - len(told):
        told.append(f"{more} more buckets that this service writes to belong to somebody else.")
    return tuple(told)


def _warning(bucket: Bucket) -> str:
    return (
        f"bucket {bucket.name} belongs to {bucket.owner!a}, and what this service writes there can be read, changed "
        f"and deleted by {_readers(bucket)}. Use a bucket of your own if that is not meant."
    )


def _readers(bucket: Bucket) -> str:
    match bucket.visibility:
        case "public":
            return "everybody in this cluster"
        case "restricted":
            return "its owner and those whom its owner lets in"
        case _:
            return "its owner"
