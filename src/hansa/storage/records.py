"""What storage remembers of buckets, volumes and people, and what it asks of a memory. `store` fulfils it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Phase = Literal["creating", "ready", "deleting"]
PRIVATE, RESTRICTED, PUBLIC = "private", "restricted", "public"


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket as it should be; the phase tells what is left to do in the store."""

    name: str
    owner: str  # a uid, "cluster_admin", or "" for one that was in the store before us
    owner_name: str
    visibility: str  # private | restricted | public, or "" for an admin's bucket without any policy
    allowed_users: tuple[str, ...]
    from_service: str  # the service whose creation made it, or ""
    phase: Phase
    created: float

    def open_to(self, uid: str) -> bool:
        """Whether a user may read and write in it."""
        if not uid or self.phase == "deleting":
            return False
        if uid == self.owner or self.visibility == PUBLIC:
            return True
        return self.visibility == RESTRICTED and uid in self.allowed_users


class BucketRecords(Protocol):
    """The durable records of buckets. Writes return once they are committed."""

    async def all(self) -> list[Bucket]: ...
    async def add(self, buckets: Sequence[Bucket]) -> None:
        """All of them or none; raises `BucketExists`."""
        ...

    async def replace(self, bucket: Bucket) -> None: ...
    async def remove(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Volume:
    """A folder that outlives the jobs using it."""

    namespace: str
    name: str
    owner: str
    size: int  # bytes it is accounted with
    created_by: str  # the service that made it, "" for a person
    policy: str  # delete | retain: what happens when that service goes
    created: float


class VolumeRecords(Protocol):
    async def all(self) -> list[Volume]: ...
    async def add(self, volume: Volume) -> None:
        """Raises `VolumeExists`."""
        ...

    async def remove(self, namespace: str, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class PersonRecord:
    uid: str
    name: str
    issuer: str
    subject: str  # who it is at the issuer; the uid is the same for people of the home issuer only
    namespace: str
    sealed: bytes  # the secret of the user's key to the store
    created: float


OwnerOf = Callable[[str], str | None]


class PeopleRecords(Protocol):
    async def all(self) -> list[PersonRecord]: ...
    async def add(self, person: PersonRecord, choose: Callable[[OwnerOf], str]) -> PersonRecord:
        """The record of `person.uid` as it is kept from now on: an earlier one, or this one with the namespace
        that `choose` took, in one transaction, from those nobody has. Raises `AnotherPerson` where the earlier one
        is of another issuer or subject."""
        ...
