"""What can a policy say? Five kinds, each a type of its own; what is left out changes nothing."""

from typing import Literal

from msgspec import field

from hansa.messages import Request
from hansa.messages.policies import PolicyKind

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Ability = Literal["live_migration", "cross_cluster_network", "snapshots", "runs_services"]
ALL_DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class FederationRules(Request, frozen=True, kw_only=True):
    """How closely clusters are watched; instead of the hub's own settings of these names."""

    heartbeat_every: float | None = None  # seconds
    suspect_after: int | None = None  # missed heartbeats
    dead_after: int | None = None


class PlacementRules(Request, frozen=True, kw_only=True):
    """Where things may run."""

    allowed: str = ""  # a selector; empty is everywhere
    forbidden: str = ""  # a selector; empty is nowhere
    spread: Literal["none", "cluster", "zone", "region"] = "none"  # copies of one thing are kept apart by this
    max_share: float = 1.0  # of the copies of one thing, in one cluster
    weights: dict[str, float] = field(default_factory=dict)  # how much each score counts


class NetworkRule(Request, frozen=True, kw_only=True):
    source: str = ""  # selectors; empty is every cluster
    target: str = ""
    action: Literal["allow", "deny"]
    both: bool = True  # also the other way round


class NetworkRules(Request, frozen=True, kw_only=True):
    """Which clusters may talk to which. The first rule that means a pair decides."""

    default: Literal["allow", "deny"] = "allow"
    rules: tuple[NetworkRule, ...] = ()


class MigrationPath(Request, frozen=True, kw_only=True):
    source: str = ""
    target: str = ""


class Window(Request, frozen=True, kw_only=True):
    """A time of the day, UTC; one that ends before it starts goes past midnight."""

    days: tuple[Day, ...] = ALL_DAYS
    start: str = "00:00"
    end: str = "24:00"


class MigrationRules(Request, frozen=True, kw_only=True):
    """Which ways VMs may move, when, and how many at once."""

    paths: tuple[MigrationPath, ...] = ()  # none: any
    windows: tuple[Window, ...] = ()  # none: at any time
    live: bool = True  # whether they may move while they run
    bandwidth: int = 0  # bytes a second of one migration; 0 is no limit
    parallel: int = 0  # in the whole federation; 0 is no limit
    parallel_per_cluster: int = 0


class AdmissionRules(Request, frozen=True, kw_only=True):
    """Who may join."""

    approve: str = ""  # a selector: these are members at once; empty is nobody
    tokens: bool = True  # whether a token may say so, too
    required: str = ""  # a selector: others are refused
    regions: tuple[str, ...] = ()
    abilities: tuple[Ability, ...] = ()
    least_version: str = ""
    most_clusters: int = 0  # 0 is no limit


Rules = FederationRules | PlacementRules | NetworkRules | MigrationRules | AdmissionRules

RULES: dict[PolicyKind, type[Rules]] = {
    "federation": FederationRules,
    "placement": PlacementRules,
    "network": NetworkRules,
    "migration": MigrationRules,
    "admission": AdmissionRules,
}
# Two of these would contradict each other; of the others each one must agree.
ONE_ONLY: frozenset[PolicyKind] = frozenset({"federation", "admission"})
