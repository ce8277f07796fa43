"""A job that was submitted to a replica in a mesh: its data is at the coordinator, which takes note and lends keys.

The replica shows its own key. It gets keys for one job, as if the coordinator had given it that job, and is followed in
the same way: the keys end when the job does, also if its cluster never says so. No person's token is needed. A replica
can ask so for the inputs and outputs its service names, and for nothing else of its owner's.
"""

import contextlib
from collections.abc import Iterator, Mapping

from hansa.identity import same_secret
from hansa.kernel import errors, names
from hansa.services import events, replicas, secret_parts
from hansa.services.delegation import lending
from hansa.services.delegation.ledger import ADOPTED, NOBODY, SERVICE, Delegation, new_permit
from hansa.services.peers import Peer
from hansa.services.ports import Record
from hansa.services.room import Room
from hansa.services.service import ORIGIN_SERVICE, Member, Service, split_path

_FIRST = 1
_MOST_OPEN = 1000  # of one replica


class NotAdopted(errors.Forbidden):
    """The coordinator lends this replica no keys for that job."""

    code = "delegation.not-adopted"


def key_of(room: Room, service: Service) -> str:
    """What this replica shows to its coordinator; "" if there is nothing it could ask for."""
    mesh = service.is_worker and service.federation is not None and service.federation.topology == "mesh"
    secrets = room.records.secrets(service.name) if mesh else {}
    return secrets.get(secret_parts.path_of(secret_parts.REPLICA_KEY), "")


@contextlib.contextmanager
def under_way(room: Room, job: str) -> Iterator[None]:
    """At the replica: the origin is told that a job is here also before it is written down, and a run at all times."""
    try:
        yield
    finally:
        room.borrowed.pop(job, None)


def permit_for(room: Room, job: str) -> str:
    """What this job's origin will show to ask about it: noted before the origin hears of the job."""
    known = room.receipts.get(job)
    room.borrowed[job] = known.permit if known is not None and known.permit else new_permit()
    return room.borrowed[job]


async def ask(room: Room, service: Service, peer: Peer, job: str, body: bytes) -> dict[str, str]:
    """At the replica: the store of this job's data, with keys."""
    member = f"{service.cluster_id}/{service.name}"
    origin = service.annotations.get(ORIGIN_SERVICE, "")
    return await peer.adopt(origin, member, job, body, key_of(room, service), permit_for(room, job))


def owner_behind(room: Room, name: str, member_key: str, key: str) -> str:
    """At the coordinator: for whom this member asks. Raises `KeyRefused`."""
    record, _ = _member(room, names.service(name), member_key, key)
    return record.service.owner


async def adopt(
    room: Room, name: str, member_key: str, job: str, event: bytes, key: str, permit: str
) -> Mapping[str, str]:
    """At the coordinator: the same keys however often it is asked."""
    names.service(name)
    names.job(job)
    record, member = _member(room, name, member_key, key)
    _require_own_input(record.service, event)
    known = await room.delegations.get(job)
    if known is None:
        known = await _note(room, record, member, job, permit)
    theirs = known.adopted and (known.cluster_id, known.service) == _at(member) and same_secret(permit, known.permit)
    if known.phase != "away" or not theirs:
        raise errors.Conflict(f"there is another job {job} here", hint="submit it under another name")
    name_of_loan = lending.of_epoch(job, known.epoch)
    return await lending.lend(room, name_of_loan, record, job, event, record.service.owner)


async def _note(room: Room, record: Record, member: Member, job: str, permit: str) -> Delegation:
    mine = [one for one in await room.delegations.active() if one.adopted]
    if sum((one.cluster_id, one.service) == _at(member) for one in mine) >= _MOST_OPEN:
        raise errors.Temporary(f"{member.key} has {_MOST_OPEN} open jobs of its own", retry_after=10)
    now = room.clock.now()
    fresh = Delegation(
        job=job,
        epoch=_FIRST,
        phase="away",
        cluster_id=member.cluster_id,
        service=member.service_name,
        endpoint=replicas.peer_of(room, record.service, member.cluster_id).address.endpoint,
        permit=permit,
        publisher=NOBODY,
        decision={ADOPTED: True, SERVICE: record.service.name},
        heard=now,
        given=now,
    )
    if await room.jobs.get(job) is not None or not await room.delegations.adopt(fresh):
        raise errors.Conflict(f"there is another job {job} here", hint="submit it under another name")
    return fresh


def _member(room: Room, name: str, member_key: str, key: str) -> tuple[Record, Member]:
    record = room.records.get(name)
    federation = record.service.federation if record is not None and record.phase == "ready" else None
    if record is not None and federation is not None and federation.topology == "mesh" and not record.service.is_worker:
        for member in replicas.oscar_members(federation):
            if member.key == member_key and same_secret(key, room.member_keys.key(record.service, member.key)):
                return record, member
    raise replicas.KeyRefused("this key opens no federation here", hint="update the federation at its coordinator")


def _require_own_input(service: Service, event: bytes) -> None:
    given = events.interpret(event)
    if not isinstance(given, events.ObjectInput):
        return
    places = [split_path(io.path) for io in service.input]
    inside = [bucket for bucket, folder in places if bucket == given.bucket and _below(given.key, folder)]
    if not inside:
        raise NotAdopted(
            "a replica may read the inputs that its service names, and no other objects",
            hint="submit this job to the coordinator",
        )


def _below(key: str, folder: str) -> bool:
    return not folder or key.startswith(f"{folder.rstrip('/')}/")


def _at(member: Member) -> tuple[str, str]:
    return member.cluster_id, member.service_name
