"""What a manager and its hub tell each other, over mutual TLS. Either may be a version older than the other."""

from typing import Annotated, Any

from msgspec import Meta, Raw, field

from hansa.messages import Message
from hansa.messages.clusters import Facts

# Named protocol capabilities of this version. What the other side does not name is not used with it.
SPEAKS = ("sections.v1", "desired.v1", "links.v1", "reports.v1")

LARGEST = 2**62  # every database can hold it, and one more
Count = Annotated[int, Meta(ge=0, le=LARGEST)]
Moment = Annotated[float, Meta(ge=0, le=253_402_300_799)]  # until the year 9999


class Join(Message, frozen=True, kw_only=True):
    token: str
    cluster: str
    request: str  # a certificate signing request, PEM
    facts: Facts = field(default_factory=Facts)


class Joined(Message, frozen=True, kw_only=True):
    cluster: str
    incarnation: Count  # grows each time a cluster of this id joins: reports of a former life are refused
    state: str  # a `State`; a newer hub may know others
    certificate: str  # PEM, the chain
    roots: str  # PEM
    trust_domain: str
    heartbeat_every: float


class Renew(Message, frozen=True, kw_only=True):
    request: str


class Leave(Message, frozen=True, kw_only=True):
    run: Annotated[str, Meta(max_length=64)] = ""  # as in its heartbeats; an earlier release says nothing at all


class Report(Message, frozen=True, kw_only=True):
    """Something that happened at a cluster, kept there until the hub has it."""

    number: Count  # counts up at the cluster
    at: Moment
    kind: str
    detail: str = ""


class Heartbeat(Message, frozen=True, kw_only=True):
    incarnation: Count
    number: Count  # counts up at the cluster, also over its restarts
    answered: Count = 0  # the last number that was answered: who has not heard that one misses something
    run: Annotated[str, Meta(max_length=64)] = ""  # another after every start: two that take turns are two senders
    sections: dict[str, Raw] = field(default_factory=dict)  # what changed since the last one that was answered
    reports: tuple[Report, ...] = ()
    whole: bool = False  # every section is in it


class Heard(Message, frozen=True, kw_only=True):
    """The answer to a heartbeat."""

    number: Count
    desired: Count  # the newest generation of what this cluster should know
    every: float  # seconds until the next one
    whole: bool = False  # we miss something: send every section next time
    received: Count = 0  # reports up to this number are here
    state: str = "ready"  # a `State`; a newer hub may know others


class Neighbour(Message, frozen=True, kw_only=True):
    """Another cluster of the federation, as a manager needs to know it."""

    id: str
    kind: str
    endpoint: str
    verify: bool
    state: str  # as above


class Setting(Message, frozen=True, kw_only=True):
    """One configuration document at the version this cluster should have."""

    name: str
    version: Count


class Desired(Message, frozen=True, kw_only=True):
    """All a cluster should know. A new generation whenever anything in it changes."""

    generation: Count
    state: str  # as above
    cordoned: bool = False
    drain: bool = False
    leave: bool = False
    settings: dict[str, Any] = field(default_factory=dict)  # the merged tree of live settings
    documents: tuple[Setting, ...] = ()  # where it came from
    neighbours: tuple[Neighbour, ...] = ()  # the other clusters
    gone: tuple[str, ...] = ()  # clusters that are members no more
    whole: bool = True  # `neighbours` are all there are; otherwise only those that changed after what was asked with
    roots: str = ""  # PEM; changes when roots are rotated
    renew: bool = False  # its certificate is of a root that goes: get a new one now


# The sections of a heartbeat. A hub keeps those it does not know, and shows them. Besides those below there are
# `facts`, what the cluster says of itself (`Facts`), and `nodes`, a list of `Node`.


class Node(Message, frozen=True, kw_only=True):
    name: str
    ready: bool = True
    cpu: Count = 0  # millicores
    cpu_used: Count = 0
    memory: Count = 0  # bytes
    memory_used: Count = 0
    disk: Count = 0
    disk_used: Count = 0
    gpu: Count = 0
    gpu_used: Count = 0


class Totals(Message, frozen=True, kw_only=True):
    """Section `totals`: what a cluster has and uses."""

    nodes: Count = 0
    nodes_ready: Count = 0
    cpu: Count = 0
    cpu_used: Count = 0
    memory: Count = 0
    memory_used: Count = 0
    disk: Count = 0
    disk_used: Count = 0
    gpu: Count = 0
    gpu_used: Count = 0
    vms: Count = 0
    services: Count = 0
    jobs_running: Count = 0
    jobs_waiting: Count = 0
    storage_used: Count = 0


class Health(Message, frozen=True, kw_only=True):
    """Section `health`: parts that do not answer, in words."""

    missing: tuple[str, ...] = ()


class Applied(Message, frozen=True, kw_only=True):
    """Section `applied`: how far the cluster is with what it should know."""

    generation: Count = 0
    documents: tuple[Setting, ...] = ()
    error: str = ""  # why the newest was not taken; the former one is in force
    tried: tuple[Setting, ...] = ()  # with an error: all documents of the generation that was not taken
    drained: bool = False
    running: Count = 0  # what a drain still waits for
    waiting: Count = 0


class LinkSeen(Message, frozen=True, kw_only=True):
    """Section `links`: a list of these."""

    target: str
    up: bool
    since: float
    latency: float | None = None
    loss: float = 0.0
    reason: str = ""
