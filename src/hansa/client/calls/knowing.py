"""What the federation has, how it is, and what happened: inventory, status, links, history, changes."""

from hansa.client.operations import Call, operation
from hansa.messages.inventory import FederationStatus, Inventory


@operation("GET", "/v1/federation/status")
def federation_status() -> Call[FederationStatus]:
    """How the federation is: a score with its reasons, what is degraded, what changed last."""
    return Call()


@operation("GET", "/v1/inventory")
def inventory(*, selector: str = "", nodes: bool = False) -> Call[Inventory]:
    """What all clusters have and use, by cluster, by region and in total; with every node if asked for."""
    return Call(query={"selector": selector, "nodes": nodes})
