"""How does a job get to another cluster, once, and how do we know what became of it?

`policies` rank members (pure), `probing` knows how they are, `handover` gives a job away, `following` watches it,
`receiving` is the other end, `data_stores` where the data is. `ledger` says what is remembered, and how an epoch lets
only one run publish its outputs.
"""

from hansa.services.delegation.ledger import (
    ADOPTED_NAMES,
    AT_HOME,
    CALLED_OFF,
    GIVEN_BACK,
    LOST,
    NOBODY,
    PASSED_BACK,
    SUPERSEDED,
    Delegation,
    Delegations,
    Parcel,
    Receipt,
    Receipts,
    is_adopted_name,
    new_permit,
)
from hansa.services.delegation.policies import Candidate, Ranking, rank
from hansa.services.delegation.probing import Prober

# the others act on the whole room, which itself names this package: import them by name
__all__ = [
    "ADOPTED_NAMES",
    "AT_HOME",
    "CALLED_OFF",
    "GIVEN_BACK",
    "LOST",
    "NOBODY",
    "PASSED_BACK",
    "SUPERSEDED",
    "Candidate",
    "Delegation",
    "Delegations",
    "Parcel",
    "Prober",
    "Ranking",
    "Receipt",
    "Receipts",
    "is_adopted_name",
    "new_permit",
    "rank",
]
