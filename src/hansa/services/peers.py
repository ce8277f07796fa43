"""Other clusters as this room sees them: what we ask of a peer's manager, and what it may answer.

`drivers/oscar` implements `Peer` over HTTP for Hansa and for OSCAR's own manager. A peer being down is a state, not
an accident: every call is bounded in time and raises `PeerUnreachable` (try again) or `PeerRefused` (do not).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from hansa.kernel import errors
from hansa.services.service import Service
from hansa.storage import Keys, StoreAddress


class PeerUnreachable(errors.Temporary):
    """A member's manager does not answer; if the request was sent, what became of it is not known."""

    code = "peer.unreachable"

    def __init__(self, message: str, *, sent: bool = True, hint: str = "", retry_after: float = 1.0) -> None:
        super().__init__(message, hint=hint, retry_after=retry_after)
        self.sent = sent  # False only when it is certain that nothing reached the peer


class PeerRefused(errors.HansaError):
    """A member's manager answered, and said no."""

    code, kind = "peer.refused", errors.Kind.CONFLICT

    def __init__(self, message: str, *, status: int, hint: str = "", problem: str = "") -> None:
        super().__init__(message, hint=hint, status=status)
        self.status = status
        self.problem = problem  # the code a Hansa peer gave, "" from others


class NameTaken(PeerRefused):
    """A member has another job of that name, and would take this one under another."""

    code = "peer.name-taken"


class UntrustedCluster(errors.Forbidden):
    """A definition names a cluster this manager was not told to trust."""

    code = "peer.untrusted"


@dataclass(frozen=True, slots=True)
class Address:
    """A peer we may talk to. Only `Peers.find` makes one, after checking it against the settings."""

    cluster_id: str
    endpoint: str
    verify: bool = True
    kind: str = ""  # "hansa" if the settings or the hub say so, "oscar" by the settings alone; its own word counts less
    shares_store: bool = False  # by the settings alone
    by_hub: bool = False  # that it is there the hub says, and no setting


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is shown to a peer: the value of an Authorization header."""

    authorization: str = field(repr=False)
    replica: str = ""  # the one service at the peer for which these are good; "" for what says who somebody is


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What one node of a peer could still take, by requests: millicores and bytes."""

    cpu: int
    memory: int


@dataclass(frozen=True, slots=True)
class PeerStatus:
    """`/system/status` of a peer, in millicores and bytes, with how long the answer took."""

    seconds: float
    nodes: tuple[NodeRoom, ...]  # those that decide what fits, see `node_front`
    nodes_count: int
    free_cpu: int
    free_memory: int
    largest_free_cpu: int
    capacity_cpu: int
    capacity_memory: int
    nodes_ready: int = 0  # on so many something could start


@dataclass(frozen=True, slots=True)
class PeerHistory:
    """What `/system/logs/{service}` of a peer tells of its jobs."""

    mean_seconds: float | None
    pending: int


@dataclass(frozen=True, slots=True)
class AwayJob:
    """A job that runs at a peer."""

    status: Literal["Pending", "Running", "Succeeded", "Failed"]
    started: float | None = None
    finished: float | None = None
    exit_code: int | None = None
    reason: str = ""
    cpu_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Handover:
    """A job on its way to a member."""

    service: str  # its name at the member
    job: str
    body: bytes
    from_service: str
    origin: str  # our cluster id
    path: tuple[str, ...]  # clusters it has passed, ours last
    permit: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Adoption:
    """What a replica asks its coordinator for: keys for one job."""

    service: str  # the coordinator's
    member: str  # who asks, as cluster/service
    job: str
    permit: str = field(repr=False)  # the coordinator asks about the job with it
    caller: str = field(default="", repr=False)  # the authorization of whoever submitted it, if they showed their own
    of: str = ""  # the job that is handed on, for which the next cluster gets keys under the name `job`


class Peer(Protocol):
    """One other manager. Every method may raise `PeerUnreachable` or `PeerRefused`."""

    address: Address

    async def capabilities(self) -> frozenset[str]:
        """What the peer can do beyond OSCAR, by name; nothing for OSCAR's own manager. Asked now and then, and
        remembered. Ask for a name, never for a version."""
        ...

    def doubt(self) -> None:
        """What it said of itself is not believed: it is asked again before the next call."""
        ...

    async def read(self, service: str, credentials: Credentials, *, settled: bool = False) -> dict[str, Any] | None:
        """The definition as the peer answers it; None if it has none of that name. `settled`: once no change of it is
        under way there, as far as the peer understands that. Its annotations, if it has any, are texts; all else may
        have any shape."""
        ...

    async def create(self, service: Service, credentials: Credentials) -> None:
        """With all secrets that are in it, like `update`: who may get which was decided when it was planned, and the
        peer is not asked again what it is."""
        ...

    async def update(self, service: Service, credentials: Credentials) -> None: ...
    async def remove(self, service: str, credentials: Credentials) -> None:
        """A missing service is fine."""
        ...

    async def put_back(self, definition: Mapping[str, Any], credentials: Credentials, *, blanks: bool) -> None:
        """An earlier definition, exactly as `read` gave it. `blanks`: whether the peer takes a blank secret for the one
        it has; OSCAR's own manager does not."""
        ...

    async def change_members(
        self, service: str, verb: str, request: Mapping[str, Any], credentials: Credentials
    ) -> dict[str, Any]:
        """`add`, `update` or `remove` at `/system/federation/{service}` of a coordinator; its answer."""
        ...

    async def status(self, credentials: Credentials, timeout: float) -> PeerStatus: ...
    async def history(self, service: str, credentials: Credentials, timeout: float) -> PeerHistory: ...
    async def hand_over(self, job: Handover, credentials: Credentials) -> None:
        """Returns when the peer accepted it (201). The same job twice is one job there. Nothing is tried twice."""
        ...

    async def run(self, job: Handover, credentials: Credentials, timeout: float) -> tuple[bytes, bool]:
        """A synchronous run there: what it answered, and whether the script ended well."""
        ...

    async def storage_keys(self, credentials: Credentials) -> tuple[StoreAddress, Keys]:
        """The caller's keys for the peer's store (`/system/config`)."""
        ...

    async def listed_job(self, service: str, job: str, credentials: Credentials) -> AwayJob | None:
        """How a job is by the peer's own listing, for peers that know no permits; None if it is not listed."""
        ...

    async def listed_log(self, service: str, job: str, credentials: Credentials) -> str: ...

    # What only Hansa peers know; authorised by the permit of the job.
    async def away_job(self, job: str, permit: str) -> AwayJob | None:
        """None if the peer itself says that it never got it."""
        ...

    async def away_log(self, job: str, permit: str, *, timestamps: bool) -> str: ...
    async def cancel(self, job: str, permit: str) -> None:
        """A job the peer does not have is fine."""
        ...

    async def may_publish(self, job: str, permit: str) -> bool:
        """False only when the origin itself says that another run has the right, or had it."""
        ...

    async def origin_storage(self, job: str, permit: str) -> dict[str, str]:
        """The store of a job's data as a provider, with keys for it. A store that lends none tells what the job may
        touch there (`reach`), for a peer that has the same store."""
        ...

    async def adopt(self, wanted: "Adoption", key: str, event: bytes) -> dict[str, str]:
        """At the coordinator of a replica with this key: the store of the data of a job that was submitted to the
        replica, or that it hands on, as `origin_storage` tells it."""
        ...

    async def fresh_token(self, service: str, group_key: str) -> tuple[str, float]:
        """An access token of the service's owner from the group's coordinator, and when it expires."""
        ...


class Peers(Protocol):
    def find(self, cluster_id: str, endpoint: str = "") -> Peer:
        """The peer of that id; `endpoint` is what a definition says it is. Raises `UntrustedCluster`."""
        ...

    def endpoint_of(self, cluster_id: str) -> str:
        """The registered endpoint, or ""."""
        ...

    async def post_event(self, url: str, body: bytes, headers: Mapping[str, str], *, verify: bool) -> None:
        """The event for a member of type `endpoint`: any web server, which never sees credentials of ours. Returns
        when it answered 200."""
        ...
