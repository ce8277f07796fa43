"""One definition, many clusters: how all replicas come to be, all or nothing, and how they stay alike.

`topology` says which worker each member gets (pure), `expansion` creates them as one durable operation, `spreading`
brings later changes to members as far as they can be reached, `drift` finds and repairs what differs, for which
`likeness` says what counts (pure).
"""

from hansa.services.replicas.creating import deploy, expands, prepare, with_group_key
from hansa.services.replicas.drift import MemberState, look, repair
from hansa.services.replicas.expansion import Failure, FederationFailed, NotOurWorker, as_somebody, peer_of, recover
from hansa.services.replicas.spreading import Removal, at_members, plan_removal, remove_workers, spread
from hansa.services.replicas.topology import check, oscar_members, own_targets

__all__ = [
    "Failure",
    "FederationFailed",
    "MemberState",
    "NotOurWorker",
    "Removal",
    "as_somebody",
    "at_members",
    "check",
    "deploy",
    "expands",
    "look",
    "oscar_members",
    "own_targets",
    "peer_of",
    "plan_removal",
    "prepare",
    "recover",
    "remove_workers",
    "repair",
    "spread",
    "with_group_key",
]
