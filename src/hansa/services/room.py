"""Everything the actions of this room work with, gathered once by `bootstrap`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from hansa.kernel.clock import Clock
from hansa.kernel.egress import Pair
from hansa.resources import NO_SHARE, Share
from hansa.services import backlog as backlogs
from hansa.services.allotment import Allotment
from hansa.services.backlog import Backlog
from hansa.services.complaints import Complaints
from hansa.services.delegation.ledger import Borrowing, Delegations, Receipts
from hansa.services.delegation.probing import Prober
from hansa.services.dispatch import Dispatcher
from hansa.services.operation import Operations
from hansa.services.peers import Credentials, Peers
from hansa.services.ports import ExposedHost, JobHost, JobLogs, Jobs, RunOrder, Services, SyncHost
from hansa.services.run_disk import RunDisk
from hansa.services.service import Service
from hansa.services.sightings import Sightings
from hansa.services.validation import Rules
from hansa.storage import Buckets, ObjectStore, People, Volumes

if TYPE_CHECKING:
    from hansa.services.credentials import Standing
    from hansa.services.delegation.spilling import Spilled
    from hansa.services.replicas.keys import MemberKeys

_SHARE = backlogs.Share(10_000, 256 * 2**20)


class Keyring(Protocol):
    """What we show to other clusters, best first; never shown to anybody else."""

    async def credentials(self, service: Service, cluster_id: str, *, caller: str = "") -> list[Credentials]:
        """For calls about this service to that cluster; `caller` is the Authorization header of a request under way."""
        ...

    async def offered(
        self, service: Service, secrets: Mapping[str, str], cluster_id: str, *, caller: str = ""
    ) -> list[Credentials]:
        """The same for a service that is not kept yet, with the secrets it came with."""
        ...

    async def keep(self, service: str, caller: str) -> Mapping[str, str]:
        """What must be kept, sealed, to finish an operation on this service after a crash."""
        ...

    async def from_kept(self, kept: Mapping[str, str], cluster_id: str) -> list[Credentials]: ...
    async def rotate_due(self) -> list[str]:
        """Exchanges refresh tokens that were not used for long; returns the services they belong to."""
        ...

    async def standing(self, service: str) -> "Standing":
        """Whether the service's refresh token works, in words for its owner."""
        ...

    async def forget_history(self, before: float, most: int) -> int:
        """Drops what the trail says of earlier times, at most so many entries; returns how many."""
        ...


class AwayKeys(Protocol):
    """Keys to our store for jobs that other clusters run for us."""

    async def lend(self, name: str, order: RunOrder) -> Mapping[str, str]:
        """The store, as other clusters reach it, with keys for what this order may touch."""
        ...

    async def end(self, name: str) -> None:
        """At once, or as soon as the store can be reached; never raises."""
        ...


class KeyHolders(Protocol):
    """The clusters that took keys of their own for replicas: none of them is ever taken for an OSCAR."""

    def known(self, cluster_id: str) -> bool: ...
    async def add(self, cluster_id: str) -> None:
        """Durable when it returns."""
        ...


class Ledger(Protocol):
    """Which object versions already became jobs."""

    async def mark_seen(self, service: str, objects: Sequence[tuple[str, str, str, int]], now: float) -> None: ...
    async def seen(self, service: str, bucket: str) -> set[tuple[str, str, int]]: ...
    async def forget(self, service: str, gone: Sequence[tuple[str, str, str, int]]) -> None: ...
    async def forget_service(self, service: str) -> None: ...
    async def cursor(self, name: str) -> int | None: ...
    async def move_cursor(self, name: str, value: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Limits:
    time_limit: float
    run_limit: float
    attempts: int
    queue_limit: int
    keep: float
    page_size: int
    share: backlogs.Share = _SHARE
    hop_limit: int = 4
    call_timeout: float = 20.0
    wait_at_members: float = 86_400.0  # seconds in which a member has to begin a job of ours
    oscar_members: bool = True  # may there be members that have to be shown their owner's access token?
    oscar_refresh_tokens: bool = True  # may those of a mesh be given its refresh token?
    restore_replicas: bool = True  # may a replica that its member does not know any more be made anew by itself?
    keep_receipts: float = 30 * 86_400.0
    unheard_ends: int = 2000  # ended jobs of one origin that did not ask how they ended
    keep_audit: float = 400 * 86_400.0


@dataclass(slots=True)
class Duty:
    """What the hub asked this cluster for; see `duty.py`."""

    cordoned: bool = False
    draining: bool = False


@dataclass(slots=True, kw_only=True)
class Room:
    records: Services
    jobs: Jobs
    logs: JobLogs
    uploads: Ledger
    people: People
    buckets: Buckets
    volumes: Volumes
    store: ObjectStore
    job_host: JobHost
    sync_host: SyncHost
    exposed_host: ExposedHost
    rules: Callable[[], Rules]
    limits: Limits
    disk: RunDisk = field(default_factory=RunDisk)
    share_of: Callable[[str], Share] = lambda owner: NO_SHARE  # what all that runs for an owner may hold together
    allotment: Allotment = field(default_factory=Allotment)
    clock: Clock
    services_namespace: str
    dispatcher: Dispatcher
    groups: tuple[str, ...] = ()  # those the cluster serves; a user's first one is their services' `vo`
    cluster_id: str
    own_endpoint: str  # how other clusters reach this manager
    home_mark: str = ""  # whose people have plain subjects here, as other clusters are told; "" if nobody has
    peers: Peers
    keyring: Keyring
    member_keys: "MemberKeys"
    key_holders: "KeyHolders"
    operations: Operations
    sightings: Sightings
    delegations: Delegations
    receipts: Receipts
    prober: Prober
    away_keys: "AwayKeys"
    # raises if a foreign store cannot be reached; the addresses are those vouched for
    check_store: Callable[[Mapping[str, str], Collection[Pair]], Awaitable[None]]
    check_place: Callable[[str, Collection[Pair]], Awaitable[None]]  # raises if a URL leads where we do not call
    webhook: "Webhook | None" = None
    backlog: Backlog = field(default_factory=Backlog)
    uploads_waiting: dict[str, str] = field(default_factory=dict)  # why uploads of a service are not jobs yet
    duty: Duty = field(default_factory=Duty)
    spilled: dict[str, "Spilled"] = field(default_factory=dict)  # synchronous runs under way at members
    borrowed: dict[tuple[str, str], Borrowing] = field(default_factory=dict)  # by job and service
    complaints: Complaints = field(default_factory=Complaints)
    being_undone: set[str] = field(default_factory=set)  # operations somebody takes back just now
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    @asynccontextmanager
    async def changing(self, name: str) -> AsyncIterator[None]:
        """One change of a service at a time."""
        lock = self._locks.setdefault(name, asyncio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked() and not getattr(lock, "_waiters", None):
                self._locks.pop(name, None)


class Webhook(Protocol):
    """For stores that call us back."""

    token: str  # what the store shows when it calls; nobody else knows it

    async def refresh(self, buckets: Iterable[str]) -> None:
        """From now on the store calls about uploads to the folders that services have in these buckets now. Where it
        cannot be told, it is later, by `work`."""
        ...

    async def work(self, on_gap: Callable[[], None]) -> None:
        """For ever: tells the store where to call and about what. `on_gap` hears that there may be uploads nobody was
        told of."""
        ...
