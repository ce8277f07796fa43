"""Configuration that reaches managers through the hub: documents, their versions, and how they are rolled out."""

from typing import Annotated, Any, Literal, get_args

from msgspec import field

from hansa.messages import Message, Request, known

RolloutState = Literal["running", "soaking", "paused", "stopped", "done", "rolled-back"]
AnyRolloutState = Annotated[str, known(get_args(RolloutState))]


class Scope(Request, frozen=True, kw_only=True):
    """Whom a document is for. Neither: everybody. Later wins: federation, then selector, then cluster."""

    selector: str = ""
    cluster: str = ""


class ToldScope(Message, frozen=True, kw_only=True):
    """The same, in answers."""

    selector: str = ""
    cluster: str = ""


class Stages(Request, frozen=True, kw_only=True):
    """How a new version spreads."""

    canary: int = 1  # so many clusters first
    percentages: tuple[int, ...] = (25, 100)  # of all, stage by stage
    soak: float = 30.0  # seconds of good health after each stage
    most_failures: int = 0  # more stop it
    patience: float = 60.0  # seconds for a cluster to take it; longer is a failure, unless it is out of reach
    roll_back: bool = False  # when failures stop it, those that have it go back by themselves


class NewDocument(Request, frozen=True, kw_only=True):
    settings: dict[str, Any]
    scope: Scope = field(default_factory=Scope)
    stages: Stages = field(default_factory=Stages)
    comment: str = ""
    expected: int | None = None  # the version this is based on; another one is a conflict


class Document(Message, frozen=True, kw_only=True):
    name: str
    version: int
    settings: dict[str, Any]
    scope: ToldScope
    author: str
    comment: str
    created: float
    removed: bool = False


class ClusterVersion(Message, frozen=True, kw_only=True):
    """Where one cluster is with one document."""

    cluster: str
    desired: int
    applied: int
    state: str  # in-sync, waiting, failed, out-of-reach, unsupported
    error: str = ""


class Rollout(Message, frozen=True, kw_only=True):
    id: int
    document: str
    version: int
    former: int
    state: AnyRolloutState
    stage: int
    stages: int
    reason: str
    since: float
    clusters: tuple[ClusterVersion, ...] = ()


class RolloutSummary(Message, frozen=True, kw_only=True):
    id: int
    version: int
    state: AnyRolloutState
    stage: int
    stages: int
    reason: str
    since: float


class DocumentSummary(Message, frozen=True, kw_only=True):
    """A document in a list: its newest version, how far it is, and how many clusters are where."""

    name: str
    version: int
    scope: ToldScope
    settings: tuple[str, ...]  # which it sets
    author: str
    comment: str
    created: float
    rollout: RolloutSummary | None
    clusters: dict[str, int]  # by state
    removed: bool = False  # it is being taken away


class Documents(Message, frozen=True, kw_only=True):
    age: float  # seconds since the hub last was in step with its database
    documents: tuple[DocumentSummary, ...]


class Drift(Message, frozen=True, kw_only=True):
    """One cluster that does not have what it should have."""

    cluster: str
    document: str
    desired: int
    applied: int
    state: str
    reason: str


class Overview(Message, frozen=True, kw_only=True):
    """The configuration of the whole federation."""

    age: float
    documents: tuple[DocumentSummary, ...]
    drift: tuple[Drift, ...]
    live: tuple[str, ...]  # settings that a document may hold


class Versions(Message, frozen=True, kw_only=True):
    versions: tuple[Document, ...]  # newest first


class Difference(Message, frozen=True, kw_only=True):
    setting: str
    before: Any = None
    after: Any = None
    change: str = "changed"  # added, removed, changed


class Diff(Message, frozen=True, kw_only=True):
    """What one version of a document has that another has not."""

    document: str
    before: int
    after: int
    settings: tuple[Difference, ...]
    scope: tuple[str, str] | None = None  # in words, if they differ


class DocumentState(Message, frozen=True, kw_only=True):
    document: Document
    rollout: Rollout | None
    clusters: tuple[ClusterVersion, ...]


class Origin(Message, frozen=True, kw_only=True):
    setting: str
    value: Any
    document: str
    version: int
    overrides: tuple[str, ...] = ()  # documents whose value lost


class Effective(Message, frozen=True, kw_only=True):
    """The merged configuration of one cluster, with where every value comes from."""

    cluster: str
    settings: dict[str, Any]
    origins: tuple[Origin, ...]
    desired: int
    applied: int
    drift: str = ""


class RollBack(Request, frozen=True, kw_only=True):
    version: int
    stages: Stages = field(default_factory=lambda: Stages(canary=0, percentages=(100,), soak=0.0))
    comment: str = ""
