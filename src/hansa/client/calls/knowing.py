"""What the federation has, how it is, and what happened: inventory, status, links, history, changes."""

from hansa.client.operations import Call, operation, stream
from hansa.messages.inventory import (
    Allocation,
    Change,
    Changes,
    ClusterInventory,
    FederationStatus,
    History,
    Inventory,
    InventoryEvent,
    Links,
    Removed,
)


@operation("GET", "/v1/federation/status")
def federation_status() -> Call[FederationStatus]:
    """How the federation is: a score with its reasons, what is degraded, what changed last."""
    return Call()


@operation("GET", "/v1/inventory")
def inventory(*, selector: str = "", nodes: bool = False) -> Call[Inventory]:
    """What all clusters have and use, by cluster, by region and in total; with every node if asked for."""
    return Call(query={"selector": selector, "nodes": nodes})


@stream("/v1/inventory/stream", snapshot=Inventory, cluster=ClusterInventory, removed=Removed, change=Change)
def watch_inventory(*, selector: str = "") -> Call[InventoryEvent]:
    """The inventory, and then every change of it as it happens; connects again by itself, and misses nothing then."""
    return Call(query={"selector": selector})


@operation("GET", "/v1/inventory/history")
def inventory_history(
    *, start: float | None = None, to: float | None = None, points: int = 120, cluster: str = "", region: str = ""
) -> Call[History]:
    """How it was, for charts: of all, of a cluster or of a region. Times are seconds since 1970, or before now if
    negative; without any it is the last hour."""
    return Call(query={"from": start, "to": to, "points": points, "cluster": cluster, "region": region})


@operation("GET", "/v1/clusters/{cluster}/history")
def cluster_history(
    cluster: str, *, start: float | None = None, to: float | None = None, points: int = 120
) -> Call[History]:
    """How one cluster was, for charts; times as for `inventory_history`."""
    return Call({"cluster": cluster}, {"from": start, "to": to, "points": points})


@operation("GET", "/v1/clusters/{cluster}/allocation")
def allocation(cluster: str) -> Call[Allocation]:
    """What one cluster has, uses and has left, and what part of the federation it is."""
    return Call({"cluster": cluster})


@operation("GET", "/v1/links")
def links(*, cluster: str = "") -> Call[Links]:
    """How clusters reach each other, all of them or those of one cluster, and where two disagree."""
    return Call(query={"cluster": cluster})


@operation("GET", "/v1/changes")
def changes(*, cluster: str = "", before: int | None = None, most: int = 100) -> Call[Changes]:
    """What happened, newest first, one page; `all_changes` goes on to the oldest."""
    return Call(query={"cluster": cluster, "before": before, "most": most})
