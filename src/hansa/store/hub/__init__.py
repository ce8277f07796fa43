"""How does a hub remember? Its tables and repositories, for one process on SQLite or several on PostgreSQL."""

from hansa.store.hub.clusters import ClusterStore
from hansa.store.hub.leases import LeaseStore

__all__ = ["ClusterStore", "LeaseStore"]
