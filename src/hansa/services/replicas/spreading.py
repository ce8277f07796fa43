"""Best effort towards members that already belong: bring them the current definition, or take their worker away.

Unlike a create nothing is taken back: a member that cannot be reached is reported, stays in the list, and is brought
up to date by the next pass of `drift`. Healthy members are never harmed by a sick one.
"""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import structlog

from hansa.kernel.errors import HansaError
from hansa.services.operation import Operation, Touched, new_id
from hansa.services.peers import Credentials, Peer, UntrustedCluster
from hansa.services.ports import Record
from hansa.services.replicas import expansion, likeness, same_people, showing, topology, whereabouts
from hansa.services.replicas.expansion import Failure
from hansa.services.replicas.showing import Way
from hansa.services.replicas.topology import Worker
from hansa.services.room import Room
from hansa.services.service import Member, Service
from hansa.services.sightings import Shown

_log = structlog.get_logger("hansa.replicas")


async def spread(
    room: Room,
    record: Record,
    caller_authorization: str,
    to: Callable[[Record], Awaitable[frozenset[str]]] | None = None,
) -> list[Failure]:
    """The coordinator's definition at all its members, or at those that `to` names when it is our turn; returns who
    could not be reached and why. What is brought is the definition of the moment: one that came later may have been
    brought before."""
    async with at_members(room, record.service.name):
        current = room.records.get(record.service.name)
        if current is None or current.phase != "ready" or current.created != record.created:
            return []
        service, secrets = current.service, room.records.secrets(current.service.name)
        if service.is_worker or not topology.oscar_members(service.federation):
            return []
        only = await to(current) if to is not None else None
        judged = await showing.judged(room, service)
        workers = topology.expand(
            service,
            secrets,
            keys=room.member_keys,
            keyless=judged.keyless,
            operation=f"v{current.version}",
            fingerprint=expansion.fingerprint(service, secrets, room.member_keys),
            own_endpoint=room.own_endpoint,
        )
        chosen = [worker for worker in workers if only is None or worker.member.key in only]
        failures = await expansion.each(
            [worker for worker in chosen if worker.member.key in judged.ways],
            lambda worker: _put(room, service, worker, judged.ways[worker.member.key], caller_authorization),
            lambda worker: worker.member.key,
        )
        named = {worker.member.key for worker in chosen}
        return [*failures, *(Failure(key, why) for key, why in judged.troubles.items() if key in named)]


def at_members(room: Room, service: str) -> AbstractAsyncContextManager[None]:
    """One at a time brings a service to its members or takes it away: else a definition on its way could come after
    the one that followed it, or a worker be made again that was just removed."""
    return room.changing(f"{service} at its members")


async def _put(room: Room, origin: Service, worker: Worker, way: Way, caller_authorization: str) -> None:
    member = worker.member
    peer = expansion.peer_of(room, origin, member.cluster_id)
    whereabouts.require(room, origin, peer)
    await same_people.require(room, peer, worker.definition)
    showing.check(room, worker.definition, peer)
    known = await showing.for_the_replica(room, origin, member, peer, way, caller_authorization)

    async def put(credentials: Credentials) -> None:
        present = await peer.read(member.service_name, credentials)
        if present is None:
            await peer.create(worker.definition, credentials)
        else:
            expansion.require_ours(present, origin, member)
            await peer.update(worker.definition, credentials)
        await _read_back(room, origin, worker, peer, credentials)

    await expansion.as_somebody(known, put)


async def _read_back(room: Room, origin: Service, worker: Worker, peer: Peer, credentials: Credentials) -> None:
    """What the member makes of what we wrote is what it has to show from now on (`drift`). If it cannot be told now,
    the next pass looks again."""
    sent, key = worker.definition, worker.member.key
    mark = sent.annotations[topology.DEFINITION]
    try:
        found = await peer.read(worker.member.service_name, credentials)
        if found is None or (found.get("annotations") or {}).get(topology.DEFINITION) != mark:
            return  # somebody else was there meanwhile
        now = likeness.parts(found, sent)
        own_ways = bool(likeness.differing(likeness.reckoned(sent), now))
        await room.sightings.keep(origin.name, key, Shown(mark, now) if own_ways else None)
    except HansaError as error:
        _log.info("not read back", service=origin.name, member=key, error=error.message)


@dataclass(frozen=True, slots=True)
class Removal:
    """Workers that are to go; `strangers` are members we were never allowed to talk to."""

    operation: Operation | None = None
    strangers: tuple[Failure, ...] = ()


async def plan_removal(room: Room, record: Record, members: Iterable[Member], caller_authorization: str) -> Removal:
    """Writes down that these workers go, before they leave the list: a crash in between then leaves none behind. If
    they stay in the list after all, so do they (`expansion.recover`)."""
    service = record.service
    plan: list[Touched] = []
    strangers: list[Failure] = []
    for member in members:
        if member.type.lower() != "oscar":
            continue
        try:
            peer = expansion.peer_of(room, service, member.cluster_id)
        except UntrustedCluster as error:
            strangers.append(Failure(member.key, error.message))  # it never got anything from us
        else:
            moved = whereabouts.moved(room, service, peer)
            plan.append(Touched(member.cluster_id, peer.address.endpoint, member.service_name, False, moved=moved))
    if not plan:
        return Removal(None, tuple(strangers))
    now = room.clock.now()
    kept = {
        **await room.keyring.keep(service.name, caller_authorization),
        **showing.keys_to_keep(room, service, (one.key for one in plan)),
    }
    operation = Operation(new_id(), "remove", service.name, service.owner, "undoing", tuple(plan), kept, now, now)
    await room.operations.add(operation)
    return Removal(operation, tuple(strangers))


async def remove_workers(room: Room, removal: Removal) -> list[Failure]:
    """Deletes the workers, if they are ours and no members again by a later change. What is out of reach now is tried
    again by a loop."""
    if removal.operation is None:
        return list(removal.strangers)
    async with at_members(room, removal.operation.subject):
        after = await expansion.undo(room, removal.operation, expansion.still_members(room, removal.operation))
    return [*removal.strangers, *(Failure(one.key, one.error) for one in after.plan if not one.undone)]
