"""Clusters of a federation: what they say of themselves, what the hub says of them, and what can be asked of it."""

from typing import Annotated, Literal, get_args

from msgspec import UNSET, UnsetType, field

from hansa.messages import Message, Request, known

State = Literal["pending", "ready", "degraded", "unreachable", "draining", "leaving", "left"]
Kind = Literal["hansa", "oscar"]
Wanted = Literal["member", "drain", "leave"]
AnyState = Annotated[str, known(get_args(State))]
AnyKind = Annotated[str, known(get_args(Kind))]
AnyWanted = Annotated[str, known(get_args(Wanted))]


class Coordinates(Message, frozen=True, kw_only=True):
    latitude: float
    longitude: float


class Abilities(Message, frozen=True, kw_only=True):
    """What a cluster can carry."""

    live_migration: bool = False
    cross_cluster_network: bool = False
    snapshots: bool = False
    max_vms: int = 0
    max_storage: int = 0  # bytes; 0 is not told
    vm_types: tuple[str, ...] = ()
    services: bool = True
    gpus: tuple[str, ...] = ()  # models


class Cost(Message, frozen=True, kw_only=True):
    """What an hour costs, in one currency for the whole federation."""

    currency: str = "EUR"
    cpu_hour: float = 0.0  # one core
    memory_hour: float = 0.0  # one GiB
    gpu_hour: float = 0.0
    storage_month: float = 0.0  # one GiB
    egress: float = 0.0  # one GiB


class Facts(Message, frozen=True, kw_only=True):
    """What a cluster registers of itself, and may change at any time. Two of these change whom others trust: its
    `endpoint`, which it can only ask for once it has joined, and `verify`, about which only the hub's admin decides."""

    name: str = ""
    description: str = ""
    endpoint: str = ""  # where its users and the other clusters reach it
    verify: bool = True  # whether others check the certificate of that endpoint
    region: str = ""
    zone: str = ""
    coordinates: Coordinates | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    abilities: Abilities = field(default_factory=Abilities)
    cost: Cost = field(default_factory=Cost)
    version: str = ""  # of its manager
    speaks: tuple[str, ...] = ()  # named protocol capabilities: what both sides know may be used


class Cluster(Message, frozen=True, kw_only=True):
    """One cluster as the hub knows it."""

    id: str
    kind: AnyKind
    state: AnyState
    since: float  # when it got into this state
    reason: str  # why it is in it
    cordoned: bool
    joined: float
    seen: float | None  # when it last reported
    facts: Facts
    certificate_until: float | None = None
    asks_for: str = ""  # another endpoint than it has: an admin approves or refuses it


class Token(Message, frozen=True, kw_only=True):
    """A token to join, as its maker sees it; `token` is shown once."""

    id: str
    expires: float
    approve: bool
    cluster: str = ""
    used_by: str = ""
    used: float | None = None
    token: str = ""
    hub: str = ""  # where managers reach the hub; only beside the token itself
    endpoint: str = ""  # where the cluster that uses it will be; "" is where it says


class NewToken(Request, frozen=True, kw_only=True):
    cluster: str = ""  # only this cluster may use it
    approve: bool = True  # whoever shows it is a member at once; otherwise somebody approves by hand
    minutes: float = 60.0
    endpoint: str = ""  # where others will reach the cluster, whatever it says itself


class NewOscarCluster(Request, frozen=True, kw_only=True):
    """An OSCAR cluster without a manager of ours: the hub itself looks after it."""

    id: str
    endpoint: str
    user: str = ""
    password: str = ""
    verify: bool = True
    name: str = ""
    region: str = ""
    zone: str = ""
    description: str = ""
    metadata: dict[str, str] = field(default_factory=dict)


class FactsChange(Request, frozen=True, kw_only=True):
    """What an admin may say of a cluster; it wins over what the cluster says itself."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    region: str | UnsetType = UNSET
    zone: str | UnsetType = UNSET
    coordinates: Coordinates | UnsetType | None = UNSET
    metadata: dict[str, str] | UnsetType = UNSET
    cost: Cost | UnsetType = UNSET


class Address(Request, frozen=True, kw_only=True):
    """Where an admin says that a cluster is, and whether others check the certificate there."""

    endpoint: str
    verify: bool = True


class AskedAddress(Request, frozen=True, kw_only=True):
    """The address a cluster asks for, as whoever decides about it has seen it."""

    endpoint: str


class StatusChange(Request, frozen=True, kw_only=True):
    """What is wanted of a cluster; what is not said stays as it is. One that drains or leaves is cordoned."""

    wanted: Wanted | UnsetType = UNSET
    cordoned: bool | UnsetType = UNSET


class Link(Message, frozen=True, kw_only=True):
    """How one cluster reaches another, as its manager measured it."""

    source: str
    target: str
    up: bool
    since: float
    latency: float | None  # seconds, median of the last probes that were answered
    loss: float  # share of the last probes that were not
    reason: str = ""
