"""Which clusters belong together, how are they, and what should they all know? The hub's room."""

from hansa.federation import errors
from hansa.federation.ports import ClusterRecord, Clusters, Fence, Leases, News, Note, Sighting
from hansa.federation.registry import Known, Registry, facts_of

__all__ = [
    "ClusterRecord",
    "Clusters",
    "Fence",
    "Known",
    "Leases",
    "News",
    "Note",
    "Registry",
    "Sighting",
    "errors",
    "facts_of",
]
