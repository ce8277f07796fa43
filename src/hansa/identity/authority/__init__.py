"""How does the hub vouch for its members, and they for it? Roots of trust, what they sign, and how it is read.

`roots` makes roots and lets an old one vouch for a new one; `signing` signs certificates of clusters and of the hub;
`requests` makes a manager's key and what it asks to be signed; `reading` tells what a certificate says; `contexts`
puts all that into TLS. Nothing here remembers anything, and time is an argument.
"""

from hansa.identity.authority import contexts
from hansa.identity.authority.names import cluster_uri, hub_name, hub_uri
from hansa.identity.authority.reading import (
    NotACluster,
    Presented,
    expires,
    fingerprint,
    fingerprints,
    presented,
    presented_in,
)
from hansa.identity.authority.requests import BadRequest, PublicKey, Requested, key_digest, new_request, public_key
from hansa.identity.authority.roots import Root, cross_sign, new_root, root_id
from hansa.identity.authority.signing import CLOCKS_DIFFER, Issued, sign_cluster, sign_hub

__all__ = [
    "CLOCKS_DIFFER",
    "BadRequest",
    "Issued",
    "NotACluster",
    "Presented",
    "PublicKey",
    "Requested",
    "Root",
    "cluster_uri",
    "contexts",
    "cross_sign",
    "expires",
    "fingerprint",
    "fingerprints",
    "hub_name",
    "hub_uri",
    "key_digest",
    "new_request",
    "new_root",
    "presented",
    "presented_in",
    "public_key",
    "root_id",
    "sign_cluster",
    "sign_hub",
]
