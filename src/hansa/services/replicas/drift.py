"""Are all members as the coordinator wants them? Looked at on request, repaired by a loop.

A worker says in an annotation which definition it was made from. That stays when somebody changes the worker at its
member, so what it shows is compared as well, part by part (`likeness`), with one of two things:

* what we would make of the definition ourselves, for a Hansa keeps what it was sent by the same rules;
* what the member showed right after we wrote it, where that was something else: an OSCAR fills in defaults of its own,
  and so may another version of Hansa. Every change and every repair reads back what it wrote. Of a create, whose answer
  must not wait for that, an OSCAR's first showing counts.

So a member's own ways are no alarm, and are never fought: at worst it is written to once, and what it then shows is
what it has to show from then on. Not noticed is a new value of a secret, for those are shown to nobody.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

import structlog

from hansa.kernel.errors import HansaError
from hansa.services.peers import Credentials, Peer, PeerRefused, PeerUnreachable
from hansa.services.ports import Record
from hansa.services.replicas import creating, expansion, likeness, showing, spreading, topology, whereabouts
from hansa.services.replicas.showing import Way
from hansa.services.replicas.topology import Worker
from hansa.services.room import Room
from hansa.services.service import Member, Service
from hansa.services.sightings import Shown

_log = structlog.get_logger("hansa.replicas")
_AT_ONCE = 8
NO_KEY = "it has no worker that takes our key: it is gone, or was taken over"


@dataclass(frozen=True, slots=True)
class MemberState:
    """One member as it was found."""

    key: str
    reachable: bool
    in_sync: bool
    last_seen: float | None
    definition: str  # the fingerprint of what it runs; "" if it has no worker of ours
    trouble: str = ""
    way: Literal["key", "token", ""] = ""  # how it is asked: by keys of its own, or as OSCAR, by its owner's token


async def look(room: Room, record: Record, caller_authorization: str = "") -> list[MemberState]:
    """Every oscar member, asked in parallel."""
    service, secrets = record.service, room.records.secrets(record.service.name)
    members = topology.oscar_members(service.federation)
    wanted: dict[str, Worker] = {}
    if not service.is_worker:  # a mesh worker is not the coordinator: it can only say whether the others answer
        mark = expansion.fingerprint(service, secrets, room.member_keys)
        made = topology.expand(
            service,
            secrets,
            keys=room.member_keys,
            operation="",
            fingerprint=mark,
            own_endpoint=room.own_endpoint,
        )
        wanted = {worker.member.key: worker for worker in made}
    asked = (_look_at(room, service, member, wanted.get(member.key), caller_authorization) for member in members)
    return list(await asyncio.gather(*asked))


async def _look_at(
    room: Room, service: Service, member: Member, wanted: Worker | None, caller_authorization: str
) -> MemberState:
    def not_seen(why: str, *, reachable: bool = False) -> MemberState:
        last = room.sightings.last(service.name, member.key)
        return MemberState(member.key, reachable, False, last, "", why, _way(known))

    known: list[Credentials] = []
    moved = ""
    try:
        peer = expansion.peer_of(room, service, member.cluster_id)
        moved = f"; {why}" if (why := whereabouts.moved(room, service, peer)) else ""
        if wanted is None:
            return await _look_from_beside(room, service, member, peer)
        way = await showing.way(room, peer)
        known = showing.only_key(room, service, member, way)
        if not known:
            known = await showing.of_people(room, service, peer, caller_authorization)
        found = await expansion.as_somebody(known, lambda c: peer.read(member.service_name, c))
        now = room.clock.now()
        room.sightings.note(service.name, member.key, now)
        if found is None:
            return MemberState(member.key, True, False, now, "", f"it has no worker{moved}", _way(known))
        trouble = await _trouble(room, service, wanted, way, found)
    except PeerUnreachable as error:
        return not_seen(error.message)
    except PeerRefused as error:
        refused = known and known[0].replica and error.status in (401, 403)
        return not_seen(NO_KEY + moved if refused else error.message, reachable=True)
    except HansaError as error:
        return not_seen(error.message, reachable=True)
    except Exception as error:  # what is wrong with one must not hide how the others are
        _log.exception("member not looked at", service=service.name, member=member.key)
        return not_seen(f"it could not be asked: {type(error).__name__}")
    return MemberState(member.key, True, not trouble, now, _mark_of(found), trouble and trouble + moved, _way(known))


async def _look_from_beside(room: Room, service: Service, member: Member, peer: Peer) -> MemberState:
    """As another worker sees a member: whether it answers."""
    known = await showing.for_jobs(room, service, member, peer, await showing.way(room, peer))
    await expansion.as_somebody(known, lambda c: peer.status(c, room.limits.call_timeout))
    now = room.clock.now()
    room.sightings.note(service.name, member.key, now)
    return MemberState(member.key, True, True, now, "", way=_way(known))


def _way(known: list[Credentials]) -> Literal["key", "token", ""]:
    if not known:
        return ""
    return "key" if known[0].replica else "token"


def _mark_of(found: dict[str, Any]) -> str:
    return str((found.get("annotations") or {}).get(topology.DEFINITION, ""))


async def _trouble(room: Room, service: Service, wanted: Worker, way: Way, found: dict[str, Any]) -> str:
    """Why the worker that was found is not the one that is wanted; "" if it is."""
    sent, key = wanted.definition, wanted.member.key
    if not expansion.is_worker_of(found, service.cluster_id, service.name):
        return "it has a service of that name which is not our worker, and is left alone"
    mark = sent.annotations[topology.DEFINITION]
    if _mark_of(found) != mark:
        return "it runs another definition"
    now = likeness.parts(found, sent)
    shown = room.sightings.shown(service.name, key)
    if shown is not None and shown.definition == mark:
        changed = likeness.differing(shown.parts, now)
    else:
        changed = likeness.differing(likeness.reckoned(sent), now)
        if changed and way == "token":
            await room.sightings.keep(service.name, key, Shown(mark, now))
            changed = []
    return f"it was changed there: {', '.join(changed)}" if changed else ""


async def repair(room: Room) -> int:
    """One pass over all coordinators here; returns how many members were brought up to date."""
    turns = asyncio.Semaphore(_AT_ONCE)  # one whose member hangs does not hold up all the others
    records = room.records.all()
    await room.sightings.forget_others(
        {(one.service.name, member.key) for one in records for member in topology.oscar_members(one.service.federation)}
    )
    ours = [one for one in records if one.phase == "ready" and _may_be_repaired(one.service)]
    return sum(await asyncio.gather(*(_repair_safely(room, record, turns) for record in ours)))


async def _repair_safely(room: Room, record: Record, turns: asyncio.Semaphore) -> int:
    """What goes wrong with one service, in whatever way, is no reason to leave the others undone."""
    name = record.service.name
    try:
        repaired = await _repair_one(room, record, turns)
    except Exception as error:
        room.complaints.tell("not repaired", f"repair of {name}", error, service=name)
        return 0
    room.complaints.passed(f"repair of {name}")
    return repaired


async def _repair_one(room: Room, record: Record, turns: asyncio.Semaphore) -> int:
    async with turns:
        behind = await _behind(room, record)
        if not behind:
            return 0

        async def still(current: Record) -> frozenset[str]:
            """A change that was under way may have told them meanwhile."""
            nonlocal behind
            behind = {key: why for key, why in (await _behind(room, current)).items() if key in behind}
            return frozenset(behind)

        failures = await spreading.spread(room, record, "", still)
        for failure in failures:
            _log.warning("not repaired", service=record.service.name, member=failure.member, why=failure.reason)
        for key in behind.keys() - {failure.member for failure in failures}:
            _log.info("repaired", service=record.service.name, member=key, why=behind[key])
        return len(behind) - len(failures)


async def _behind(room: Room, record: Record) -> dict[str, str]:
    """The members that have to be brought up to date, and why."""
    seen = [one for one in await look(room, record) if one.reachable and not one.in_sync]
    return {one.key: one.trouble for one in seen if room.limits.restore_replicas or one.trouble != NO_KEY}


def _may_be_repaired(service: Service) -> bool:
    return creating.expands(service) and service.federation is not None and service.federation.topology != "none"
