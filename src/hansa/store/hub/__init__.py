"""How does a hub remember? Its tables and repositories, for one process on SQLite or several on PostgreSQL."""

from hansa.store.hub.authorities import AuthorityStore
from hansa.store.hub.clusters import ClusterStore
from hansa.store.hub.credentials import CredentialStore
from hansa.store.hub.documents import DocumentStore
from hansa.store.hub.leases import LeaseStore
from hansa.store.hub.rollouts import RolloutStore
from hansa.store.hub.samples import SampleStore
from hansa.store.hub.tokens import TokenStore

__all__ = [
    "AuthorityStore",
    "ClusterStore",
    "CredentialStore",
    "DocumentStore",
    "LeaseStore",
    "RolloutStore",
    "SampleStore",
    "TokenStore",
]
