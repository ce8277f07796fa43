"""One definition, many clusters: how all replicas come to be, all or nothing, and how they stay alike.

`topology` says which worker each member gets (pure), `expansion` creates them as one durable operation, `spreading`
brings later changes to members as far as they can be reached, `drift` finds and repairs what differs.
"""

from hansa.services.replicas.creating import deploy, expands, prepare
from hansa.services.replicas.expansion import Failure, FederationFailed, NotOurWorker, recover
from hansa.services.replicas.spreading import remove_workers, spread
from hansa.services.replicas.topology import own_targets

__all__ = [
    "Failure",
    "FederationFailed",
    "NotOurWorker",
    "deploy",
    "expands",
    "own_targets",
    "prepare",
    "recover",
    "remove_workers",
    "spread",
]
