"""What is said and written down while one job is offered to one member after the other? Used by `handover`."""

from dataclasses import dataclass, field
from typing import Any

from hansa.services.delegation.ledger import DROPPED, NOBODY, OVERDUE, SERVICE, Delegation, Phase, new_permit
from hansa.services.delegation.policies import Ranking
from hansa.services.job import Job
from hansa.services.peers import Peer
from hansa.services.ports import Record
from hansa.services.service import Member, Service


@dataclass(slots=True)
class Offers:
    """One job that is offered to one member after the other."""

    record: Record
    job: Job
    epoch: int
    said: dict[str, Any]  # what becomes the decision
    claimed: bool = False  # whether a member is on record that may have it
    refused: list[int] = field(default_factory=list)  # epochs of those that said no, whose keys have not ended yet


def beginning(service: Service, ranking: Ranking, before: Delegation | None) -> dict[str, Any]:
    return {
        SERVICE: service.name,
        "policy": (service.federation.delegation if service.federation else "") or "static",
        "scores": {key: dict(parts) for key, parts in ranking.scores.items()},
        "refused": dict(ranking.refused),
        "chosen": "",
        **({OVERDUE: list(before.overdue)} if before is not None and before.overdue else {}),
        **({DROPPED: dict(before.dropped)} if before is not None and before.dropped else {}),
    }


def delegation(
    job: str, epoch: int, phase: Phase, member: Member, peer: Peer, said: dict[str, Any], now: float, named: str
) -> Delegation:
    return Delegation(
        job=job,
        epoch=epoch,
        phase=phase,
        cluster_id=member.cluster_id,
        service=member.service_name,
        endpoint=peer.address.endpoint,
        permit=new_permit(),
        publisher=NOBODY,
        decision={**said, "refused": dict(said["refused"])},
        heard=now,
        given=now,
        named=named,
    )
