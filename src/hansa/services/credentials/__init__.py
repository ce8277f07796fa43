"""How does a manager act for a service's owner in other clusters, without ever giving the refresh token away?

`Keyring` is the front: what to show to a peer, best first. `exchanging` turns the refresh token into access tokens and
keeps its successors (`lineage`), `borrowing` lets a replica ask its coordinator instead, `upkeep` rotates and revokes,
`standing` says how things are in words. `ports` is what `drivers/oidc` and `store` fulfil. Decision 0003 says why.
"""

from hansa.services.credentials.errors import (
    GroupKeyRefused,
    IssuerUnreachable,
    Misconfigured,
    NotCoordinator,
    NoToken,
    TokenSpent,
)
from hansa.services.credentials.issuers import unverified_claims
from hansa.services.credentials.keyring import Keyring
from hansa.services.credentials.lineage import Lineage, State
from hansa.services.credentials.ports import (
    AuditEntry,
    AuditTrail,
    ClientRefused,
    Exchanged,
    InvalidGrant,
    Lineages,
    OwnersIssuer,
    TokenExchange,
    Unreachable,
)
from hansa.services.credentials.standing import Standing

__all__ = [
    "AuditEntry",
    "AuditTrail",
    "ClientRefused",
    "Exchanged",
    "GroupKeyRefused",
    "InvalidGrant",
    "IssuerUnreachable",
    "Keyring",
    "Lineage",
    "Lineages",
    "Misconfigured",
    "NoToken",
    "NotCoordinator",
    "OwnersIssuer",
    "Standing",
    "State",
    "TokenExchange",
    "TokenSpent",
    "Unreachable",
    "unverified_claims",
]
