"""Which clusters belong together, how are they, and what should they all know? The hub's room."""

from hansa.federation import (
    acting,
    desired,
    detector,
    errors,
    heartbeats,
    inventory,
    judging,
    lifecycle,
    live,
    member,
    selectors,
    syncing,
)
from hansa.federation.duties import Duty
from hansa.federation.hub_clock import HubClock
from hansa.federation.ports import (
    NOW,
    Authorities,
    Authority,
    ClusterRecord,
    Clusters,
    Fence,
    Leases,
    News,
    Note,
    Sighting,
    TokenRecord,
    Tokens,
)
from hansa.federation.registry import Known, Registry, facts_of
from hansa.federation.room import Hub

__all__ = [
    "NOW",
    "Authorities",
    "Authority",
    "ClusterRecord",
    "Clusters",
    "Duty",
    "Fence",
    "Hub",
    "HubClock",
    "Known",
    "Leases",
    "News",
    "Note",
    "Registry",
    "Sighting",
    "TokenRecord",
    "Tokens",
    "acting",
    "desired",
    "detector",
    "errors",
    "facts_of",
    "heartbeats",
    "inventory",
    "judging",
    "lifecycle",
    "live",
    "member",
    "outsiders",
    "selectors",
    "syncing",
]
