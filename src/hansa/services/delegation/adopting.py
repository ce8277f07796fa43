"""A job whose data is at its coordinator was submitted to a replica, or is handed on by one: the coordinator takes note
and lends keys.

The replica shows its own key. It gets keys for one job, as if the coordinator had given it that job, and is followed in
the same way: the keys end when the job does, also if its cluster never says so. No person's token is needed; if whoever
submitted the job showed their own, the keys open what they may read. Otherwise a replica can ask for the inputs and
outputs its service names, and for nothing else of its owner's.

Whoever a replica hands a job on to gets keys of its own, under another name (`for_next`). They end as soon as the
replica says that the job is not there any more.
"""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hansa.identity import Caller, access, same_secret
from hansa.kernel import errors, names
from hansa.services import duty, events, replicas, secret_parts
from hansa.services.delegation import lending
from hansa.services.delegation.ledger import (
    EVENT,
    MAIN,
    NOBODY,
    OF,
    READS,
    SERVICE,
    SUBMITTER,
    Borrowing,
    Delegation,
    adopted_name,
    new_permit,
)
from hansa.services.job import Job
from hansa.services.peers import Adoption, Peer
from hansa.services.ports import Record
from hansa.services.room import Room
from hansa.services.service import ORIGIN_CLUSTER, ORIGIN_SERVICE, Member, Service, split_path

ONWARD_KEYS = "onward-keys"  # the capability of a coordinator that lends them, and adopts jobs for their callers
_FIRST = 1
_MOST_OPEN = 1000  # of one replica


class NotAdopted(errors.Forbidden):
    """The coordinator lends this replica no keys for that job."""

    code = "delegation.not-adopted"


def key_of(room: Room, service: Service) -> str:
    """What this replica shows to its coordinator to have a job adopted; "" if there is nothing it could ask for."""
    return _key(room, service) if _is_mesh(service) else ""


def _key(room: Room, service: Service) -> str:
    secrets = room.records.secrets(service.name) if service.is_worker else {}
    return secrets.get(secret_parts.path_of(secret_parts.REPLICA_KEY), "")


def _is_mesh(service: Service) -> bool:
    return service.federation is not None and service.federation.topology == "mesh"


@contextlib.contextmanager
def under_way(room: Room, service: Service, job: str) -> Iterator[None]:
    """Forget the temporary permit of this job when the block ends, or the last of several blocks for the same job."""
    one = room.borrowed.setdefault((job, service.name), Borrowing())
    one.requests += 1
    try:
        yield
    finally:
        one.requests -= 1
        if not one.requests:
            del room.borrowed[job, service.name]


def permit_for(room: Room, service: Service, job: str) -> str:
    """What this job's origin will show to ask about it: noted before the origin hears of the job. A request that is
    repeated while the first one is under way gets the same. A job of another service has another permit, whatever its
    name: permits of one origin are not for the others."""
    one = room.borrowed[job, service.name]
    if not one.permit:
        known = room.receipts.of(job, service.name)
        one.permit = known.permit if known is not None and known.permit else new_permit()
    return one.permit


def is_under_way(room: Room, job: str, permit: str) -> bool:
    """At the replica: the origin is told that a job is here also before it is written down, and a run at all times."""
    return any(
        name == job and bool(one.permit) and same_secret(permit, one.permit) for (name, _), one in room.borrowed.items()
    )


async def ask(
    room: Room, service: Service, peer: Peer, job: str, body: bytes, permit: str, caller: str
) -> dict[str, str]:
    """At the replica: the store of this job's data, with keys, for the `caller` whose authorization this is."""
    origin = service.annotations.get(ORIGIN_SERVICE, "")
    wanted = Adoption(origin, _own_name(service), job, permit, caller)
    return await peer.adopt(wanted, key_of(room, service), body)


async def lends_onward(room: Room, service: Service, job: Job) -> bool:
    """At the replica: whether its coordinator lends keys of its own to whoever gets this job from us. It does for what
    it gave or lent us, and in a mesh for what every replica may ask for. Older ones do not."""
    receipt, home = room.receipts.get(job.name), service.annotations.get(ORIGIN_CLUSTER, "")
    if receipt is None or not receipt.store.get("access_key") or not _key(room, service):
        return False
    if receipt.origin != home and not (_is_mesh(service) and _is_own_input(service, job.event)):
        return False
    return ONWARD_KEYS in await replicas.peer_of(room, service, home).capabilities()


async def for_next(room: Room, service: Service, given: Delegation, event: bytes) -> dict[str, str]:
    """At the replica: the store, with the keys of whoever we gave this job."""
    origin = service.annotations.get(ORIGIN_SERVICE, "")
    name = f"on-{_derived('name', given)[:40]}"
    wanted = Adoption(origin, _own_name(service), name, _derived("permit", given), of=given.job)
    peer = replicas.peer_of(room, service, service.annotations.get(ORIGIN_CLUSTER, ""))
    return await peer.adopt(wanted, _key(room, service), event)


def is_of_next(given: Delegation, permit: str) -> bool:
    """At the replica: whether the coordinator asks for whoever has this job from us now."""
    return given.onward and bool(given.permit) and same_secret(permit, _derived("permit", given))


def _derived(what: str, given: Delegation) -> str:
    """The same however often it is asked for, also after a restart; and another one for whoever gets the job next."""
    return hashlib.sha256(f"onward {what} {given.job} {given.permit}".encode()).hexdigest()


def _own_name(service: Service) -> str:
    return f"{service.cluster_id}/{service.name}"


def owner_behind(room: Room, name: str, member_key: str, key: str) -> str:
    """At the coordinator: for whom this member asks. Raises `KeyRefused`."""
    record, _ = _member(room, names.service(name), member_key, key)
    return record.service.owner


async def adopt(
    room: Room, wanted: Adoption, key: str, event: bytes, caller: Caller | None = None
) -> Mapping[str, str]:
    """At the coordinator: the same keys however often it is asked. `caller` is who showed their own token."""
    job, permit = names.job(wanted.job), wanted.permit
    record, member = _member(room, names.service(wanted.service), wanted.member, key)
    main = await _main(room, record.service, member, wanted.of) if wanted.of else None
    ours = await _our_job(room, record.service, main)
    if ours is not None:  # whoever is named as its caller
        submitter, event, caller = ours.owner, ours.event, None
    else:
        submitter, event = _behind(record, event, main, caller)
    reads = lending.reads(submitter, event)
    known = await room.delegations.get(_name(record.service, member, job))
    if known is None:
        if not wanted.of:
            duty.require_staying(room)
        noted: dict[str, Any] = {READS: reads}
        if caller is not None:
            noted |= {SUBMITTER: submitter, EVENT: _mark(event)}
        if wanted.of:
            noted[OF] = names.job(wanted.of)
        if main is not None:
            noted[MAIN] = [main.job, main.epoch]
        known = await _note(room, record, member, job, permit, noted)
    if not same_secret(permit, known.permit) or known.decision.get(READS, reads) != reads:
        raise _another(job)
    return await lending.lend_while(room, known, record, event, submitter)


async def is_lent(room: Room, service: Service, job: str, path: Sequence[str]) -> bool:
    """At the coordinator: whether a job that came to us was submitted to a replica on its way, which has keys for it
    from us."""
    return any(
        one.adopted and one.of_service == service.name and one.cluster_id in path
        for one in await room.delegations.named(job)
    )


def _name(service: Service, member: Member, job: str) -> str:
    return adopted_name(service.name, member.cluster_id, member.service_name, job)


def _another(job: str) -> errors.Conflict:
    return errors.Conflict(f"there is another job {job} at that member", hint="submit it under another name")


async def _our_job(room: Room, service: Service, main: Delegation | None) -> Job | None:
    """What this member has from us, if it began here: then its input is known here, and by whose right it is read."""
    found = await room.jobs.get(main.job) if main is not None and not main.adopted else None
    if found is None or found.service != service.name or room.receipts.get(found.name) is not None:
        return None
    if found.ended:
        raise NotAdopted(f"job {found.name} has ended")
    return found


def _behind(record: Record, event: bytes, main: Delegation | None, caller: Caller | None) -> tuple[str, bytes]:
    """By whose right the input of any other job is read, and which. For one whose caller was there it is theirs, and no
    other than they named; else the owner's, for what the service names."""
    service = record.service
    if not _is_mesh(service):
        raise replicas.KeyRefused("replicas of this federation do not ask for keys of their own")
    if caller is not None:
        access.require_invocable(
            caller, service.name, owner=service.owner, visibility=service.visibility, allowed=service.allowed_users
        )
        return caller.uid, event
    if main is not None and main.decision.get(SUBMITTER) and main.decision.get(EVENT) == _mark(event):
        return str(main.decision[SUBMITTER]), event
    if not _is_own_input(service, event):
        raise NotAdopted(
            "a replica may read the inputs that its service names, and no other objects",
            hint="submit this job to the coordinator",
        )
    return service.owner, event


async def _main(room: Room, service: Service, member: Member, of: str) -> Delegation | None:
    """What this member has under that name: from us, or with keys from us."""
    for one in (await room.delegations.get(of), *await room.delegations.named(of)):
        if one is None or one.phase not in ("offering", "away") or not _is_at(one, member):
            continue
        if not one.adopted or one.of_service == service.name:
            return one
    return None


def _mark(event: bytes) -> str:
    return hashlib.sha256(event).hexdigest()


async def _note(
    room: Room, record: Record, member: Member, job: str, permit: str, noted: Mapping[str, Any]
) -> Delegation:
    if await room.delegations.adopted_at(member.cluster_id, member.service_name) >= _MOST_OPEN:
        raise errors.Temporary(f"{member.key} has {_MOST_OPEN} open jobs of its own", retry_after=10)
    now = room.clock.now()
    fresh = Delegation(
        job=_name(record.service, member, job),
        epoch=_FIRST,
        phase="away",
        cluster_id=member.cluster_id,
        service=member.service_name,
        endpoint=replicas.peer_of(room, record.service, member.cluster_id).address.endpoint,
        permit=permit,
        publisher=NOBODY,
        decision={SERVICE: record.service.name, **noted},
        heard=now,
        given=now,
        named=job,
    )
    if await room.delegations.adopt(fresh):
        return fresh
    known = await room.delegations.get(fresh.job)  # the same request came twice at once, or another one of that name
    if known is None:
        raise _another(job)
    return known


def _member(room: Room, name: str, member_key: str, key: str) -> tuple[Record, Member]:
    record = room.records.get(name)
    if record is not None and record.phase == "ready" and not record.service.is_worker:
        for member in replicas.oscar_members(record.service.federation):
            if member.key == member_key and same_secret(key, room.member_keys.key(record.service, member.key)):
                return record, member
    raise replicas.KeyRefused("this key opens no federation here", hint="update the federation at its coordinator")


def _is_own_input(service: Service, event: bytes) -> bool:
    given = events.interpret(event)
    if not isinstance(given, events.ObjectInput):
        return True
    places = [split_path(io.path) for io in service.input]
    return any(bucket == given.bucket and _below(given.key, folder) for bucket, folder in places)


def _below(key: str, folder: str) -> bool:
    return not folder or key.startswith(f"{folder.rstrip('/')}/")


def _is_at(one: Delegation, member: Member) -> bool:
    return (one.cluster_id, one.service) == (member.cluster_id, member.service_name)
