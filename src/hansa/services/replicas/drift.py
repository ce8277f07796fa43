"""Are all members as the coordinator wants them? Looked at on request, repaired by a loop."""

import asyncio
from dataclasses import dataclass

import structlog

from hansa.kernel.errors import HansaError
from hansa.services.peers import PeerUnreachable
from hansa.services.ports import Record
from hansa.services.replicas import creating, expansion, spreading, topology
from hansa.services.room import Room
from hansa.services.service import Member, Service

_log = structlog.get_logger("hansa.replicas")
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class MemberState:
    """One member as it was found."""

    key: str
    reachable: bool
    in_sync: bool
    last_seen: float | None
    definition: str  # the fingerprint of what it runs; "" if it has no worker of ours
    trouble: str = ""


class Sightings:
    """When each member was last seen; kept in memory only, a restart looks anew."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], float] = {}

    def note(self, service: str, member: str, now: float) -> None:
        self._seen[(service, member)] = now

    def last(self, service: str, member: str) -> float | None:
        return self._seen.get((service, member))


async def look(room: Room, record: Record, caller_authorization: str = "") -> list[MemberState]:
    """Every oscar member, asked in parallel."""
    members = topology.oscar_members(record.service.federation)
    return list(await asyncio.gather(*(_look_at(room, record, member, caller_authorization) for member in members)))


async def _look_at(room: Room, record: Record, member: Member, caller_authorization: str) -> MemberState:
    service = record.service
    wanted = expansion.fingerprint(service, room.records.secrets(service.name))
    try:
        peer = expansion.peer_of(room, service, member.cluster_id)
        known = await room.keyring.credentials(service, member.cluster_id, caller=caller_authorization)
        found = await expansion.as_somebody(known, lambda c: peer.read(member.service_name, c))
    except PeerUnreachable as error:
        last = room.sightings.last(service.name, member.key)
        return MemberState(member.key, False, False, last, "", error.message)
    except HansaError as error:
        last = room.sightings.last(service.name, member.key)
        return MemberState(member.key, True, False, last, "", error.message)
    now = room.clock.now()
    room.sightings.note(service.name, member.key, now)
    if found is None:
        return MemberState(member.key, True, False, now, "", "it has no worker")
    marks = found.get("annotations") or {}
    runs = str(marks.get(topology.DEFINITION, ""))
    # a mesh worker is not the coordinator: it can only say whether the other answers
    in_sync = runs == wanted if not service.is_worker else True
    return MemberState(member.key, True, in_sync, now, runs, "" if in_sync else "it runs another definition")


async def repair(room: Room) -> int:
    """One pass over all coordinators here; returns how many members were brought up to date."""
    turns = asyncio.Semaphore(_AT_ONCE)  # one whose member hangs does not hold up all the others
    ours = [one for one in room.records.all() if one.phase == "ready" and _may_be_repaired(one.service)]
    return sum(await asyncio.gather(*(_repair_one(room, record, turns) for record in ours)))


async def _repair_one(room: Room, record: Record, turns: asyncio.Semaphore) -> int:
    async with turns:
        behind = frozenset(one.key for one in await look(room, record) if one.reachable and not one.in_sync)
        if not behind:
            return 0
        failures = await spreading.spread(room, record, "", behind)
        for failure in failures:
            _log.warning("not repaired", service=record.service.name, member=failure.member, why=failure.reason)
        return len(behind) - len(failures)


def _may_be_repaired(service: Service) -> bool:
    return creating.expands(service) and service.federation is not None and service.federation.topology != "none"
