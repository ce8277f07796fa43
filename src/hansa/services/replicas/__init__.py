"""One definition, many clusters: how all replicas come to be, all or nothing, and how they stay alike.

`topology` says which worker each member gets (pure), `expansion` creates them as one durable operation, `spreading`
brings later changes to members as far as they can be reached, `drift` finds and repairs what differs, for which
`likeness` says what counts (pure). `keys` derives the secrets of each replica (pure), `showing` says what a member is
shown, `whereabouts` at which address, `kept` what a replica here lets its coordinator do. `same_people` refuses members
to whom our uids mean somebody else.
"""

from hansa.services.replicas.creating import deploy, expands, prepare, risks, without_group_key
from hansa.services.replicas.drift import MemberState, look, repair
from hansa.services.replicas.expansion import Failure, FederationFailed, NotOurWorker, as_somebody, peer_of, recover
from hansa.services.replicas.kept import KeyRefused, by_key, by_token, check_change, giver_of
from hansa.services.replicas.keys import MemberKeys
from hansa.services.replicas.showing import NotItself, OscarForbidden, Way, for_jobs, is_bearer, of_people, way
from hansa.services.replicas.spreading import Removal, at_members, plan_removal, remove_workers, spread
from hansa.services.replicas.topology import check, oscar_members, own_targets
from hansa.services.replicas.whereabouts import Moved, noted

__all__ = [
    "Failure",
    "FederationFailed",
    "KeyRefused",
    "MemberKeys",
    "MemberState",
    "Moved",
    "NotItself",
    "NotOurWorker",
    "OscarForbidden",
    "Removal",
    "Way",
    "as_somebody",
    "at_members",
    "by_key",
    "by_token",
    "check",
    "check_change",
    "deploy",
    "expands",
    "for_jobs",
    "giver_of",
    "is_bearer",
    "look",
    "noted",
    "of_people",
    "oscar_members",
    "own_targets",
    "peer_of",
    "plan_removal",
    "prepare",
    "recover",
    "remove_workers",
    "repair",
    "risks",
    "spread",
    "way",
    "without_group_key",
]
