"""The members of a service's federation, as `/system/federation/{service}` shows and changes them."""

from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from hansa.identity import Caller
from hansa.kernel import errors
from hansa.services import bounds, calling_out, reading, replicas, validation
from hansa.services.errors import BadService
from hansa.services.peers import PeerRefused
from hansa.services.ports import Record
from hansa.services.replicas import Failure
from hansa.services.room import Room
from hansa.services.secret_parts import take_out
from hansa.services.service import ORIGIN_CLUSTER, ORIGIN_SERVICE, ClusterRef, Federation, Member, Service, Struct

Verb = Literal["add", "update", "remove"]


class AskCoordinator(errors.Forbidden):
    """A replica's members are kept by its coordinator, which was shown nobody it lets change them."""

    code = "federation.ask-coordinator"


class MembersRequest(Struct, frozen=True, kw_only=True):
    """What clients send to change members."""

    members: tuple[Member, ...] = ()
    update: tuple[Member, ...] = ()
    clusters: dict[str, ClusterRef] = {}
    storage_providers: dict[str, dict[str, dict[str, str]]] = {}
    delete: bool = False


def identity(member: Member) -> tuple[str, str, str]:
    """Type, cluster and service; an endpoint that names neither is known by its address."""
    kind = member.type.lower()
    if kind == "endpoint" and not member.cluster_id and not member.service_name:
        return kind, "", member.url
    return kind, member.cluster_id, member.service_name


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
    if len(by_old) != len(olds):
        raise BadService("a member is named twice", hint="give each member one new form")
    missing = set(by_old) - {identity(member) for member in members}
    if missing:
        raise BadService("no such member: " + ", ".join("/".join(one) for one in sorted(missing)))
    return tuple(by_old.get(identity(member), member) for member in members)


def removed(members: tuple[Member, ...], gone: tuple[Member, ...]) -> tuple[Member, ...]:
    leaving = {identity(member) for member in gone}
    return tuple(member for member in members if identity(member) not in leaving)


@dataclass(frozen=True, slots=True)
class Changed:
    """What came of a change: the topology as it is now, and the members it did not reach."""

    topology: str
    members: tuple[Member, ...]
    failures: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = ()  # what the owner should know of what members are given


async def change(
    room: Room, caller: Caller, name: str, request: MembersRequest, verb: Verb, authorization: str = ""
) -> Changed:
    """Applies one change to the whole topology, whichever member is asked. Only the owner may; two changes at a time
    never lose each other; a member that cannot be reached is told later."""
    record = reading.owned(room, caller, name)
    service = record.service
    if service.is_worker:
        return await _ask_coordinator(room, service, _below(service, request, verb), verb, authorization)
    async with room.changing(name):
        record = reading.owned(room, caller, name)
        before = record.service.federation.members if record.service.federation else ()
        changed = _changed(room, record.service, request, verb)
        await calling_out.check(room, changed, calling_out.as_before(record.service, changed))
        after = changed.federation
        assert after is not None
        removal = replicas.Removal()
        if request.delete and verb != "add":
            kept = {identity(member) for member in after.members}
            gone = [member for member in before if identity(member) not in kept]
            removal = await replicas.plan_removal(room, record, gone, authorization)
        notes = await replicas.risks(room, changed, room.records.secrets(name))
        by_owner = caller.uid == record.service.owner
        endpoints = replicas.noted(room, changed, record.endpoints, by_owner=by_owner)
        record = await _save(room, replace(record, endpoints=endpoints), changed)
    failures = await replicas.spread(room, record, authorization)
    failures += await replicas.remove_workers(room, removal)
    return Changed(after.topology, after.members, tuple(failures), notes)


def _below(service: Service, request: MembersRequest, verb: Verb) -> MembersRequest:
    """What is added at an inner member of a tree hangs on that member."""
    if verb != "add" or service.federation is None or service.federation.topology != "tree":
        return request
    parent = f"{service.cluster_id}/{service.name}"
    members = tuple(
        msgspec.structs.replace(one, parent=parent) if one.parent is msgspec.UNSET else one for one in request.members
    )
    return msgspec.structs.replace(request, members=members)


def _changed(room: Room, service: Service, request: MembersRequest, verb: Verb) -> Service:
    """The definition as it is to be, with the secrets the request brought; refuses what makes no sense."""
    federation = service.federation or Federation(group_id=service.name)
    for member in (*request.members, *request.update):
        validation.check_member(member.type, member.cluster_id, member.service_name, member.url, member.priority)
    match verb:
        case "add":
            members = added(federation.members, request.members)
        case "update":
            members = updated(federation.members, request)
        case "remove":
            members = removed(federation.members, request.members)
    topology = federation.topology
    if verb == "add" and not federation.members and topology == "none":
        topology = "star"  # the first member makes a star of it, as people expect
    providers = dict(service.storage_providers)
    for kind, by_id in request.storage_providers.items():
        providers[kind.lower()] = {**providers.get(kind.lower(), {}), **by_id}
    changed = msgspec.structs.replace(
        service,
        cluster_id=service.cluster_id or room.cluster_id,
        federation=msgspec.structs.replace(federation, members=members, topology=topology),
        clusters={**service.clusters, **request.clusters},
        storage_providers=providers,
    )
    bounds.check(changed)
    replicas.check(changed)
    return changed


async def _save(room: Room, record: Record, changed: Service) -> Record:
    public, secrets = take_out(changed, room.records.secrets(changed.name))
    secrets = replicas.without_group_key(secrets)
    fresh = replace(record, service=public, updated=room.clock.now())
    return await room.records.replace(fresh, secrets, record.version)


async def _ask_coordinator(
    room: Room, service: Service, request: MembersRequest, verb: Verb, authorization: str
) -> Changed:
    """A federation has one list, and its coordinator keeps it. It is asked as the service's owner; this cluster's own
    password is never sent there, so an admin may find nobody to ask as."""
    origin, name = service.annotations.get(ORIGIN_CLUSTER, ""), service.annotations.get(ORIGIN_SERVICE, "")
    named = service.clusters.get(origin)
    peer = room.peers.find(origin, named.endpoint if named else "")
    known = await room.keyring.credentials(service, origin, caller=authorization)
    body = msgspec.to_builtins(request)
    try:
        answer = await replicas.as_somebody(known, lambda c: peer.change_members(name, verb, body, c))
    except (errors.Unauthenticated, PeerRefused) as error:
        if isinstance(error, PeerRefused) and error.status not in (401, 403):
            raise
        # not a 401 of ours: whoever asks is known here, and the same password again would not help
        raise AskCoordinator(
            f"the members of {service.name} are kept by its coordinator {origin}/{name}, "
            f"which cannot be asked on your behalf: {error.message}",
            hint=f"change them at {peer.address.endpoint}/system/federation/{name}, or sign in here as the service's "
            "owner with a bearer token",
        ) from error
    members = msgspec.convert(answer.get("members") or [], tuple[Member, ...])
    failures = tuple(Failure(str(one["member"]), str(one["reason"])) for one in answer.get("warnings") or [])
    return Changed(str(answer.get("topology", "")), members, failures)
