"""What rules does the federation follow? Typed documents of five kinds, with versions and a dry run.

`rules` are the five types, `checking` reads them, `changing` writes them, `effects` says what one would change.
`in_force` gives what holds now; `admission`, `placement`, `network` and `migration` say what follows of it.
"""

from hansa.federation.policies import changing, in_force, migration, network, placement
from hansa.federation.policies.admission import Verdict, admit
from hansa.federation.policies.in_force import FederationLimits, federation
from hansa.federation.policies.rules import RULES

__all__ = [
    "RULES",
    "FederationLimits",
    "Verdict",
    "admit",
    "changing",
    "federation",
    "in_force",
    "migration",
    "network",
    "placement",
]
