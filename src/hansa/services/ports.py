"""What services and jobs need from the outside: a memory (`Services`, `Jobs`) and an engine that runs things.

`store` implements the memory; `drivers/local` (later `drivers/kubernetes`) the engine. An engine may offer some of
the hosts only; each is small enough to be written in a day and has a contract suite in `tests/contracts/`.
"""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from hansa.resources import Invocation
from hansa.services.job import Job, Outcome, Status
from hansa.services.service import Service
from hansa.storage import NOTHING, Reach


@dataclass(frozen=True, slots=True)
class Record:
    """A service as we remember it. `secrets` are kept encrypted and never leave through an API."""

    service: Service
    version: int
    phase: Literal["creating", "ready", "deleting"]
    stopped: bool
    made_buckets: tuple[str, ...]
    created: float
    updated: float
    bucket_owners: Mapping[str, str] = field(default_factory=dict)
    """Whose each of its buckets was when its owner last wrote it; see `bucket_owners.py`."""
    endpoints: Mapping[str, str] = field(default_factory=dict)
    """Where the cluster of each member was when its owner last wrote it; see `replicas/whereabouts.py`."""


class Services(Protocol):
    """The cluster's services. Reads come from memory, writes return once they are durable."""

    def get(self, name: str) -> Record | None: ...
    def all(self) -> Sequence[Record]: ...
    def secrets(self, name: str) -> Mapping[str, str]:
        """Decrypted, by dotted path: `environment.secrets.KEY`, `storage_providers.s3.x.secret_key`, …"""
        ...

    async def add(self, record: Record, secrets: Mapping[str, str]) -> None:
        """Raises `ServiceExists` if the name is taken."""
        ...

    async def replace(
        self, record: Record, secrets: Mapping[str, str], expected_version: int, *, commits: str = ""
    ) -> Record:
        """Raises `ServiceBusy` if somebody else was quicker. Returns the record with its new version. `commits` is an
        operation that succeeds in the same transaction; `ServiceBusy` too if it is being taken back already."""
        ...

    async def remove(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class JobPage:
    jobs: tuple[Job, ...]  # newest first, without their events
    next_page: str  # "" on the last page
    remaining: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pending job as the dispatcher needs it."""

    name: str
    service: str
    owner: str
    cpu: int
    memory: int
    ended: bool = False  # its script has; what it left is still to be delivered


class Jobs(Protocol):
    """The durable records of jobs."""

    async def accept(self, job: Job, invocation: Invocation | None = None) -> bool:
        """Committed when it returns. False if a job of that name was accepted before: nothing changes then."""
        ...

    async def accept_upload(self, job: Job, bucket: str, key: str, etag: str, modified: int) -> bool:
        """Like `accept`, in one transaction with the ledger of uploads: an object version becomes one job, ever."""
        ...

    async def begin(self, name: str, now: float) -> Job | None:
        """Pending → Running, one attempt more; None if it is not pending any longer."""
        ...

    async def end(self, name: str, outcome: Outcome, now: float) -> bool:
        """Pending or Running → its end; False if it ended before or is gone."""
        ...

    async def requeue_running(self, most_attempts: int, now: float) -> list[str]:
        """After a restart: what ran when we died waits again, or failed if it was tried too often (returned)."""
        ...

    async def wait_again(self, name: str, reason: str) -> bool:
        """Running → Pending, for it has not begun; False if it is anything else."""
        ...

    async def again(self, name: str, reasons: Sequence[str], event: bytes | None = None) -> bool:
        """Failed for one of these reasons → Pending; False if it is anything else. `event` is its body, if it came."""
        ...

    async def waiting(self) -> list[Waiting]:
        """All pending jobs in order of acceptance, also those whose acceptance was cancelled before this was asked."""
        ...

    async def open_sizes(self) -> Mapping[str, tuple[str, int]]:
        """Owner and size of the body of every job that has not ended, by name."""
        ...

    async def explain(self, name: str, reason: str) -> None:
        """Why a pending job still waits."""
        ...

    async def explain_start(self, name: str, reason: str) -> None:
        """Why a job that was given to our engine has not begun there; "" when it has."""
        ...

    async def get(self, name: str) -> Job | None: ...
    async def page(self, service: str, owner: str | None, page: str, size: int) -> JobPage: ...
    async def remove(self, names: Sequence[str]) -> None: ...
    async def names(self, service: str, owner: str | None, statuses: frozenset[Status]) -> list[str]: ...
    async def expired(self, before: float, most: int) -> list[str]: ...
    async def ended(self) -> list[tuple[str, str, float]]:
        """All that ended and are kept, with their owners and when."""
        ...

    async def counts(self) -> Mapping[Status, int]: ...
    async def note(self, invocations: Sequence[Invocation], counted: Mapping[Invocation, int]) -> None:
        """`counted` has how many more there were of a kind; all of one kind have one row."""
        ...

    async def invocations(self, most: int) -> list[Invocation]:
        """The latest ones, oldest first, without those of exposed services."""
        ...

    async def forget_invocations(self, before: float) -> None: ...


@dataclass(frozen=True, slots=True)
class VolumeMount:
    """A volume, which outlives the run. All mounts of one order belong to one group."""

    source: str  # a folder's path or a claim's name: see `storage.Place`
    target: str  # where the script sees it
    gid: int  # whoever runs with this group may write
    one_node: bool = False  # whoever uses it has to run where the others do
    size: int = 0  # bytes it may hold; 0 if others see to that


HOME = "minio.default"  # the store of a service's data, as its definition names it


@dataclass(frozen=True, slots=True)
class RunOrder:
    """Everything an engine needs to run one job or one synchronous call."""

    name: str
    service: Service
    secrets: Mapping[str, str]  # environment.secrets the script asked for, never the refresh token
    providers: Mapping[str, Mapping[str, str]]  # credentials of foreign stores, by "s3.id"
    event: bytes
    cpu: int
    memory: int
    seconds: float
    moving: float = 86_400.0  # seconds in which its files have to come, and as many in which they have to go
    disk: int = 0  # bytes it may write, volumes left aside; 0 is no limit
    mounts: tuple[VolumeMount, ...] = ()
    reach: Reach = NOTHING  # what it may touch in the cluster's own store
    lent: frozenset[str] = frozenset()  # providers whose keys were made for this run
    vouched: frozenset[str] = frozenset()  # providers whose address came from a trusted cluster, not from a tenant
    may_publish: Callable[[], Awaitable[bool]] | None = None  # asked before outputs are stored; False: throw them away
    explain: Callable[[str], Awaitable[None]] | None = None  # hears why it has not begun, if it has to wait
    newest: Callable[[], Mapping[str, str]] | None = None  # if its data is elsewhere: that store, with the keys of now
    movable: bool = False  # another cluster may run it: an engine that has no room for it says so (`NoRoom`)
    submitter: str = ""  # who asked for it; "" for what the service's owner wants to stand ready
    weigh: Callable[[int], None] | None = None  # hears of bytes of an answer before we hold them; raises if too many

    @property
    def payer(self) -> str:
        """Whose quota it counts against."""
        return self.submitter or self.service.owner


def same_definition(one: RunOrder, other: RunOrder) -> bool:
    """Are both runs of the same service as it was defined? Name, event, times, reach and who asks differ from call to
    call."""
    alike = replace(one, name=other.name, event=other.event, seconds=other.seconds, moving=other.moving)
    return replace(alike, reach=other.reach, submitter=other.submitter, weigh=other.weigh) == other


def up_to_date(order: RunOrder) -> RunOrder:
    """With the keys of now: a job that was given to us once more while it ran got others, and its first ones ended."""
    store = order.newest() if order.newest is not None else {}
    if not store.get("access_key") or store == order.providers.get(HOME):
        return order
    return replace(order, providers={**order.providers, HOME: dict(store)})


class JobHost(Protocol):
    """Runs jobs: stage in, run, stage out."""

    async def run(self, order: RunOrder) -> Outcome:
        """Until its end. Harmless to call again for the same name: a script that finished is not run twice.
        Files are moved with the keys that the order has `up_to_date`. Cancelling it ends the whole process tree.
        Raises `NoRoom` for one that is movable, has not begun and cannot be placed; nothing of it is left then."""
        ...

    async def ended(self) -> frozenset[str]:
        """Jobs whose script ended in an earlier life of ours, as far as is known: `run` only delivers what is left."""
        ...

    async def discard(self, name: str) -> None:
        """Everything of the run but its log is gone."""
        ...


class JobLogs(Protocol):
    async def keep(self, name: str, text: str, *, owner: str) -> None:
        """The log of a job of this owner that ran elsewhere, with timestamps."""
        ...

    async def recall(self, ended: Sequence[tuple[str, str, float]]) -> None:
        """Jobs that ended before we began, with their owners and when: their logs count, if they have any here."""
        ...

    async def read(self, name: str, *, timestamps: bool) -> str | None: ...
    async def remove(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Reply:
    body: bytes
    exit_code: int | None
    reason: str


class SyncHost(Protocol):
    """Answers `/run` with warm workers."""

    async def invoke(self, order: RunOrder) -> Reply:
        """Within `order.seconds`, waiting included. Raises `NoWorker` if none became free by then.
        Cancelling it ends the run."""
        ...

    async def settle(self, wanted: Mapping[str, RunOrder]) -> None:
        """Keeps `min_scale` workers warm for each of these services and none for others."""
        ...


@dataclass(frozen=True, slots=True)
class Deployment:
    state: Literal["pending", "ready", "degraded", "failed", "stopped", "unavailable"]
    reason: str
    since: float | None
    active: int
    affected: int
    kind: Literal["exposed_service", "knative_service", "unavailable"]


@dataclass(frozen=True, slots=True)
class LogLine:
    at: float
    text: str


class ExposedHost(Protocol):
    """Long-lived services behind `/system/services/{name}/exposed/`."""

    async def apply(self, order: RunOrder, *, running: bool) -> None:
        """Makes it so (a new definition restarts it); returns before it is healthy."""
        ...

    async def restart(self, name: str) -> None: ...
    async def remove(self, name: str) -> None: ...
    def deployment(self, name: str) -> Deployment | None: ...
    def log(self, name: str, tail: int) -> Sequence[LogLine]: ...
    async def connect(self, name: str) -> socket.socket:
        """A connected stream socket to a healthy instance; raises `Temporary` when there is none."""
        ...
