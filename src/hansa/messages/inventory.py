"""What the whole federation has and how it is: totals, changes, history, health."""

from typing import Any

from msgspec import field

from hansa.messages import Message
from hansa.messages.clusters import AnyKind, AnyState, AnyWanted, Cluster, Link
from hansa.messages.members import Node, Totals


class ClusterInventory(Message, frozen=True, kw_only=True):
    id: str
    kind: AnyKind
    state: AnyState
    region: str
    zone: str
    seen: float | None
    totals: Totals
    nodes: tuple[Node, ...] = ()


class Inventory(Message, frozen=True, kw_only=True):
    at: float
    age: float  # seconds since the hub last was in step with its database; more than a few: it is out of reach
    clusters: tuple[ClusterInventory, ...]
    regions: dict[str, Totals]
    total: Totals


class Change(Message, frozen=True, kw_only=True):
    """One entry of what happened, newest last; `id` grows."""

    id: int
    at: float
    cluster: str
    kind: str  # joined, state, cordoned, facts, config, policy, link, ...
    detail: str


class Degraded(Message, frozen=True, kw_only=True):
    cluster: str
    state: AnyState
    since: float
    reason: str


class Penalty(Message, frozen=True, kw_only=True):
    points: float
    reason: str


class FederationStatus(Message, frozen=True, kw_only=True):
    at: float
    age: float
    score: float  # 100 is well
    reasons: tuple[Penalty, ...]
    clusters: int
    by_state: dict[str, int]
    degraded: tuple[Degraded, ...]
    recent: tuple[Change, ...]
    total: Totals
    hubs: tuple[str, ...] = ()
    work: dict[str, str] = field(default_factory=dict)  # periodic work and which hub does it


class Sample(Message, frozen=True, kw_only=True):
    at: float
    seconds: float  # how long a time it stands for
    totals: Totals


class History(Message, frozen=True, kw_only=True):
    cluster: str  # "" is the whole federation, or a region
    samples: tuple[Sample, ...]  # oldest first
    region: str = ""


class Clusters(Message, frozen=True, kw_only=True):
    age: float
    clusters: tuple[Cluster, ...]


class ClusterStatus(Message, frozen=True, kw_only=True):
    """How one cluster is, what is wanted of it, and everything it reported, by section."""

    state: AnyState
    reason: str
    since: float
    seen: float | None
    wanted: AnyWanted
    cordoned: bool
    cluster: Cluster
    sections: dict[str, Any]


class Resource(Message, frozen=True, kw_only=True):
    capacity: int
    used: int
    free: int
    share: float  # used / capacity
    of_federation: float  # capacity / the capacity of all members


class Allocation(Message, frozen=True, kw_only=True):
    """What one cluster has, and how much of it is used."""

    cluster: str
    state: AnyState
    seen: float | None
    age: float
    cpu: Resource
    memory: Resource
    disk: Resource
    gpu: Resource


class Disagreement(Message, frozen=True, kw_only=True):
    """Two clusters of which one reaches the other, but not the other way round."""

    clusters: tuple[str, str]
    detail: str


class Links(Message, frozen=True, kw_only=True):
    age: float
    links: tuple[Link, ...]
    disagreements: tuple[Disagreement, ...]


class Changes(Message, frozen=True, kw_only=True):
    """Newest first; older ones by asking for those before the last id here."""

    changes: tuple[Change, ...]


class Removed(Message, frozen=True, kw_only=True):
    """Of the stream: a cluster that is gone, or that the selector does not mean any more."""

    id: str


InventoryEvent = Inventory | ClusterInventory | Removed | Change  # what the stream tells
