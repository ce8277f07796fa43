"""The members of a service's federation, as `/system/federation/{service}` shows and changes them."""

from dataclasses import replace

import msgspec

from hansa.identity import Caller
from hansa.services import reading, validation
from hansa.services.errors import BadService
from hansa.services.ports import Record
from hansa.services.room import Room
from hansa.services.secret_parts import take_out
from hansa.services.service import ClusterRef, Federation, Member, Struct


class MembersRequest(Struct, frozen=True, kw_only=True):
    """What clients send to change members."""

    members: tuple[Member, ...] = ()
    update: tuple[Member, ...] = ()
    clusters: dict[str, ClusterRef] = {}
    storage_providers: dict[str, dict[str, dict[str, str]]] = {}
    delete: bool = False


def identity(member: Member) -> tuple[str, str, str]:
    return member.type.lower(), member.cluster_id, member.service_name


def added(members: tuple[Member, ...], fresh: tuple[Member, ...]) -> tuple[Member, ...]:
    known = {identity(member) for member in members}
    return members + tuple({identity(m): m for m in fresh if identity(m) not in known}.values())


def updated(members: tuple[Member, ...], request: MembersRequest) -> tuple[Member, ...]:
    """Each entry of `update` replaces the member it stands beside in `members`, or the one it names itself."""
    olds = request.members or request.update
    news = request.update or request.members
    if len(olds) != len(news):
        raise BadService("members and update must have as many entries", hint="pair each member with its new form")
    by_old = {identity(old): new for old, new in zip(olds, news, strict=True)}
    missing = set(by_old) - {identity(member) for member in members}
    if missing:
        raise BadService("no such member: " + ", ".join("/".join(one) for one in sorted(missing)))
    return tuple(by_old.get(identity(member), member) for member in members)


def removed(members: tuple[Member, ...], gone: tuple[Member, ...]) -> tuple[Member, ...]:
    leaving = {identity(member) for member in gone}
    return tuple(member for member in members if identity(member) not in leaving)


async def change(room: Room, caller: Caller, name: str, request: MembersRequest, verb: str) -> Record:
    """Applies one change; the owner alone may, and two changes at a time never lose each other."""
    async with room.changing(name):
        record = reading.owned(room, caller, name)
        service = record.service
        federation = service.federation or Federation(group_id=service.name)
        for member in (*request.members, *request.update):
            validation.check_member(member.type, member.cluster_id, member.service_name, member.url, member.priority)
        match verb:
            case "add":
                members = added(federation.members, request.members)
            case "update":
                members = updated(federation.members, request)
            case _:
                members = removed(federation.members, request.members)
        providers = dict(service.storage_providers)
        for kind, by_id in request.storage_providers.items():
            providers[kind.lower()] = {**providers.get(kind.lower(), {}), **by_id}
        changed = msgspec.structs.replace(
            service,
            federation=msgspec.structs.replace(federation, members=members),
            clusters={**service.clusters, **request.clusters},
            storage_providers=providers,
        )
        public, secrets = take_out(changed, room.records.secrets(name))
        fresh = replace(record, service=public, updated=room.clock.now())
        return await room.records.replace(fresh, secrets, record.version)
