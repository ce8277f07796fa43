"""What the federation has, how it is, and what happened: inventory, status, links, history, changes."""

from hansa.client.operations import Call, operation, stream
from hansa.messages.inventory import (
    Change,
    ClusterInventory,
    FederationStatus,
    Inventory,
    InventoryEvent,
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
