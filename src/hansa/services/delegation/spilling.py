"""A synchronous run that has no room here may be answered by a member, if its service says so.

Asked for by the annotation `hansa/spill-runs: "true"`. The caller waits meanwhile, so nothing is written down: whoever
cannot answer is passed by, and if nobody can, the run waits for room here as it would without members.
"""

from dataclasses import dataclass, field

import structlog

from hansa.kernel.errors import HansaError
from hansa.services import replicas
from hansa.services.delegation import lending
from hansa.services.delegation.handover import Delegator
from hansa.services.delegation.ledger import new_permit
from hansa.services.job import Job, Status
from hansa.services.peers import Handover
from hansa.services.ports import Record, Reply, RunOrder
from hansa.services.service import Member, Service

_log = structlog.get_logger("hansa.delegation")
SPILL = "hansa/spill-runs"


@dataclass(frozen=True, slots=True)
class Spilled:
    """A run under way at a member: by its permit the member gets the keys for its data."""

    service: str
    owner: str
    event: bytes
    loan: str
    permit: str = field(repr=False)


def wanted(service: Service) -> bool:
    return service.annotations.get(SPILL, "").lower() == "true" and bool(replicas.own_targets(service))


async def spill(delegator: Delegator, record: Record, order: RunOrder, owner: str) -> Reply | None:
    """The answer of the first member that gives one; None if none does."""
    room, service = delegator.room, record.service
    job = Job(order.name, service.name, owner, Status.PENDING, room.clock.now(), order.cpu, order.memory, order.event)
    ranking = await delegator.decide(record, job)
    for turn, member in enumerate(ranking.order):
        if member.type.lower() != "oscar":
            continue
        spilled = Spilled(service.name, owner, order.event, lending.of_run(order.name, turn), new_permit())
        room.spilled[order.name] = spilled
        try:
            return await _ask(delegator, service, member, order, spilled.permit)
        except HansaError as error:
            _log.info("run not spilled", member=member.key, error=error.message)
        finally:
            room.spilled.pop(order.name, None)
            await lending.end(room, spilled.loan)
    return None


async def _ask(delegator: Delegator, service: Service, member: Member, order: RunOrder, permit: str) -> Reply:
    room = delegator.room
    run = Handover(
        service=member.service_name,
        job=order.name,
        body=order.event,
        from_service=service.name,
        origin=room.cluster_id,
        path=(room.cluster_id,),
        permit=permit,
        headers=member.headers or {},
    )
    peer = replicas.peer_of(room, service, member.cluster_id)
    known = await replicas.for_jobs(room, service, member, peer, await replicas.way(room, peer))
    bearers = [one for one in known if replicas.is_bearer(one)]
    body, ended_well = await replicas.as_somebody(bearers, lambda c: peer.run(run, c, order.seconds))
    return Reply(body, 0 if ended_well else None, "" if ended_well else f"the script failed at {member.cluster_id}")
