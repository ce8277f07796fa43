"""Brings a definition to every member: all of them, or nothing of ours left anywhere.

Members are handled in parallel, each in this order: read what is there, write that down, create or change it. `undo`
puts back exactly what was written down, and only where our mark still stands, so what somebody else made or changed
meanwhile is never touched. It may be repeated until every member has answered.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec
import structlog

from hansa.kernel import errors
from hansa.kernel.errors import HansaError
from hansa.services import burden
from hansa.services.former_secrets import OPERATION
from hansa.services.operation import OPEN, Operation, Outline, State, Touched, new_id
from hansa.services.peers import Credentials, Peer, PeerRefused
from hansa.services.ports import Record
from hansa.services.replicas import same_people, showing, topology
from hansa.services.replicas.keys import MemberKeys
from hansa.services.replicas.showing import Way
from hansa.services.replicas.topology import Worker
from hansa.services.room import Room
from hansa.services.service import FEDERATION_WORKER, ORIGIN_CLUSTER, ORIGIN_SERVICE, Member, Service

T = TypeVar("T")
_log = structlog.get_logger("hansa.replicas")
_REFUSED_US = (401, 403)
_LONGEST_PAUSE, _PAUSE_SHARE = 60.0, 0.2  # seconds between tries, by how long it has been tried
ORIGIN = "origin"  # among what an operation keeps: the cluster id its workers are marked with


class FederationFailed(errors.HansaError):
    """A federated change could not be brought to every member and was taken back."""

    code, kind = "federation.failed", errors.Kind.BAD_GATEWAY


class NotOurWorker(errors.Conflict):
    """A member's cluster has a service of that name which is not a replica of this federation."""

    code = "federation.not-our-worker"


@dataclass(frozen=True, slots=True)
class Failure:
    member: str
    reason: str
    hint: str = ""


def fingerprint(service: Service, secrets: Mapping[str, str], keys: MemberKeys) -> str:
    """Changes whenever a worker would have to change, for a new secret too. It is shown to whoever sees the service;
    the token in it, which they do not see, keeps them from trying out secrets."""
    bare = msgspec.structs.replace(service, labels={}, owner="", namespace="", vo="")
    parts = msgspec.json.encode((bare, sorted(secrets.items()), keys.mark(service)))
    return hashlib.sha256(parts).hexdigest()[:16]


async def begin(room: Room, record: Record, caller_authorization: str) -> Operation:
    """The durable record of what is about to happen; nothing was touched yet."""
    service = record.service
    burden.check_begin(await room.operations.burden(service.owner))
    now = room.clock.now()
    members = topology.oscar_members(service.federation)
    kept = {
        **await room.keyring.keep(service.name, caller_authorization),
        **showing.keys_to_keep(room, service, (member.key for member in members)),
    }
    operation = Operation(new_id(), "create", service.name, service.owner, "applying", (), kept, now, now)
    await room.operations.add(operation)
    return operation


async def probe(room: Room, service: Service, secrets: Mapping[str, str], caller_authorization: str) -> frozenset[str]:
    """Does every target accept the caller's credentials? Asked before anything is changed anywhere; returns the members
    that have no service of their worker's name."""
    members = topology.oscar_members(service.federation)
    absent: set[str] = set()

    async def ask(member: Member) -> None:
        if await _probe_one(room, service, secrets, member, caller_authorization) is None:
            absent.add(member.key)

    failures = await each(members, ask, lambda member: member.key)
    if failures:
        said = "; ".join(f"{one.member}: {one.reason}" for one in failures)
        raise errors.Unauthenticated(
            f"federation auth failed: {said}", hint="every member's cluster must accept your own credentials"
        )
    return frozenset(absent)


async def _probe_one(
    room: Room, service: Service, secrets: Mapping[str, str], member: Member, caller_authorization: str
) -> dict[str, Any] | None:
    peer = peer_of(room, service, member.cluster_id)
    await showing.way(room, peer)  # who gets nothing is not asked either
    known = await room.keyring.offered(service, secrets, member.cluster_id, caller=caller_authorization)
    return await as_somebody(known, lambda credentials: peer.read(member.service_name, credentials))


async def apply(
    room: Room, record: Record, operation: Operation, caller_authorization: str, absent: frozenset[str] = frozenset()
) -> Operation:
    """Every member has its worker when this returns; raises `FederationFailed` naming every member that has not. Those
    `absent` a moment ago are not asked again: should one have it by now, it refuses a second of that name."""
    service, secrets = record.service, room.records.secrets(record.service.name)
    judged = await showing.judged(room, service)
    if judged.troubles:
        raise _failed(Failure(key, why) for key, why in judged.troubles.items())
    workers = topology.expand(
        service,
        secrets,
        keys=room.member_keys,
        keyless=judged.keyless,
        operation=operation.id,
        fingerprint=fingerprint(service, secrets, room.member_keys),
        own_endpoint=room.own_endpoint,
    )
    planning = _Planning(room, operation)
    missing = (one.member for one in workers if one.member.key in absent)
    await planning.note(*(_touched(room, service, member, existed=False) for member in missing))
    failures = await each(
        workers,
        lambda worker: _deploy(
            room, service, worker, planning, caller_authorization, known_absent=worker.member.key in absent
        ),
        lambda worker: worker.member.key,
    )
    if failures:
        raise _failed(failures)
    return planning.operation


def _failed(failures: Iterable[Failure]) -> FederationFailed:
    told = list(failures)
    return FederationFailed(
        "; ".join(f"{one.member}: {one.reason}" for one in told),
        hint="; ".join(dict.fromkeys(one.hint for one in told if one.hint)),
        failed=[one.member for one in told],
    )


class _Planning:
    """Writes what was there before a member is touched; many members share one row."""

    def __init__(self, room: Room, operation: Operation) -> None:
        self._room = room
        self._turn = asyncio.Lock()
        self.operation = operation

    async def note(self, *touched: Touched, befores: Mapping[str, bytes] | None = None) -> None:
        async with self._turn:
            fresh = replace(self.operation, updated=self._room.clock.now())
            for one in touched:
                fresh = fresh.with_member(one)
            if not await self._room.operations.save(fresh, expected="applying", befores=befores):
                raise errors.Conflict("this operation is being taken back")
            self.operation = fresh

    async def keep(self, touched: Touched, before: dict[str, Any]) -> None:
        """With what was there, if its owner may have that much kept; one at a time, so that it stays true."""
        definition, owner = msgspec.json.encode(before), self.operation.owner
        async with self._room.changing(f"what is kept for {owner}"):
            burden.check_keep(await self._room.operations.burden(owner), len(definition))
            await self.note(touched, befores={touched.key: definition})


def _touched(room: Room, origin: Service, member: Member, *, existed: bool) -> Touched:
    endpoint = peer_of(room, origin, member.cluster_id).address.endpoint
    return Touched(member.cluster_id, endpoint, member.service_name, existed)


async def _deploy(
    room: Room, origin: Service, worker: Worker, planning: _Planning, caller_authorization: str, *, known_absent: bool
) -> None:
    member, definition = worker.member, worker.definition
    peer = peer_of(room, origin, member.cluster_id)
    await same_people.require(room, peer, definition)
    showing.check(room, definition, peer)
    known = await showing.of_people(room, origin, peer, caller_authorization)

    async def put(credentials: Credentials) -> None:
        if not known_absent and await _keep_what_is_there(room, origin, member, peer, planning, credentials):
            await peer.update(definition, credentials)
        else:
            await peer.create(definition, credentials)

    await as_somebody(known, put)


async def _keep_what_is_there(
    room: Room, origin: Service, member: Member, peer: Peer, planning: _Planning, credentials: Credentials
) -> bool:
    """Whether there is a worker of ours."""
    before = await peer.read(member.service_name, credentials)
    touched = _touched(room, origin, member, existed=before is not None)
    if before is None:
        await planning.note(touched)
        return False
    require_ours(before, origin, member)
    await planning.keep(touched, before)
    return True


def require_ours(definition: dict[str, Any], origin: Service, member: Member) -> None:
    """A service somebody else made under that name is never changed."""
    if not is_worker_of(definition, origin.cluster_id, origin.name):
        raise NotOurWorker(
            f"{member.cluster_id} has a service {member.service_name} of its own",
            hint="choose another service_name for this member",
        )


def is_worker_of(definition: dict[str, Any], cluster_id: str, service: str) -> bool:
    marks = definition.get("annotations") or {}
    return (marks.get(FEDERATION_WORKER), marks.get(ORIGIN_CLUSTER), marks.get(ORIGIN_SERVICE)) == (
        "true",
        cluster_id,
        service,
    )


async def undo(room: Room, operation: Operation, spared: frozenset[str] = frozenset()) -> Operation:
    """Puts every touched member back, except those `spared`; returns the operation with what is done and what is still
    to do. Two at a time would undo each other's notes: a second caller waits, and goes on from what the first left."""
    async with room.changing(f"operation {operation.id}"):
        current = await room.operations.get(operation.id) or operation
        if current.state not in OPEN:
            return current
        room.being_undone.add(operation.id)
        try:
            return await _undo(room, current, spared)
        finally:
            room.being_undone.discard(operation.id)


async def _undo(room: Room, operation: Operation, spared: frozenset[str]) -> Operation:
    if operation.state == "applying":
        fresh = replace(operation, state="undoing", updated=room.clock.now())
        if not await room.operations.save(fresh, expected="applying"):
            current = await room.operations.get(operation.id)
            if current is None or current.state != "undoing":
                return current or operation
            fresh = current
        operation = fresh
    left = [replace(one, undone=True) if one.key in spared else one for one in operation.plan]
    plan = tuple(await asyncio.gather(*(_undo_one(room, operation, one) for one in left)))
    done = all(one.undone for one in plan)
    state: State = "undone" if done else "undoing"
    kept = {} if done else operation.kept  # credentials stay no longer than they are needed
    after = replace(operation, plan=plan, state=state, kept=kept, updated=room.clock.now())
    await room.operations.save(after, expected="undoing")
    return after


async def _undo_one(room: Room, operation: Operation, touched: Touched) -> Touched:
    if touched.undone:
        return touched
    try:
        peer = room.peers.find(touched.cluster_id, touched.endpoint)
        way = await showing.way(room, peer)
        known = await showing.for_undoing(room, operation.kept, touched, peer, way)
        await as_somebody(known, lambda credentials: _put_back(room, peer, operation, touched, credentials, way))
    except HansaError as error:
        return replace(touched, error=error.message)
    except Exception as error:  # one that answers as nobody thought of is tried again, later and later, like any other
        why = _unforeseen(error)
        if touched.error != why:
            _log.exception("not taken back yet", operation=operation.id, member=touched.key)
        return replace(touched, error=why)
    return replace(touched, undone=True, error="")


async def _put_back(
    room: Room, peer: Peer, operation: Operation, touched: Touched, credentials: Credentials, way: Way
) -> None:
    # what we sent may still be worked on there, although we gave up waiting for the answer
    present = await peer.read(touched.service_name, credentials, settled=True)
    if present is None:
        return
    if operation.kind == "remove":
        ours = is_worker_of(present, operation.kept.get(ORIGIN) or room.cluster_id, operation.subject)
    else:
        ours = (present.get("annotations") or {}).get(OPERATION) == operation.id
    if not ours:
        return  # we never got there, or somebody changed it after us
    if not touched.existed:
        await peer.remove(touched.service_name, credentials)
        return
    before = await room.operations.before(operation.id, touched.key)
    if before is None:
        raise errors.NotFound("what it had before is not kept")
    await peer.put_back(before, credentials, blanks=way == "key")


async def recover(room: Room, before: float) -> int:
    """Takes back what a crash cut short and removes workers that were out of reach; returns how many operations are
    still open. `before` is when this manager started: an older operation that is still being applied has nobody who
    works on it."""
    outlines = await room.operations.open()
    outcomes = await asyncio.gather(
        *(_recover_one(room, outline, before) for outline in outlines), return_exceptions=True
    )
    for outline, outcome in zip(outlines, outcomes, strict=True):
        about = f"operation {outline.id}"
        if isinstance(outcome, Exception):
            room.complaints.tell("not taken back yet", about, outcome, operation=outline.id)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            room.complaints.passed(about)
    return sum(outcome is not True for outcome in outcomes)


async def _recover_one(room: Room, outline: Outline, before: float) -> bool:
    """Whether there is nothing left to do."""
    if outline.id in room.being_undone:
        return False  # who began it is at it: the others need not wait for that
    if outline.state == "applying" and outline.created >= before:
        return True  # the request that began it is still at work
    pause = min(_LONGEST_PAUSE, _PAUSE_SHARE * (outline.updated - outline.created))
    if outline.updated >= before and room.clock.now() - outline.updated < pause:
        return False
    operation = await room.operations.get(outline.id)
    if operation is None:
        return True  # it ended meanwhile, long ago
    after = await undo(room, operation, await _members_again(room, operation))
    if after.state == "undone":
        _log.info("taken back", operation=operation.id, service=operation.subject)
    return after.state != "undoing"


async def _members_again(room: Room, operation: Operation) -> frozenset[str]:
    if operation.kind != "remove":
        return frozenset()
    async with room.changing(operation.subject):  # a change under way says whether they go
        return still_members(room, operation)


def still_members(room: Room, operation: Operation) -> frozenset[str]:
    """Those of a removal that did not leave the list, or came back: their workers stay."""
    record = room.records.get(operation.subject)
    if record is None or record.phase != "ready":
        return frozenset()
    return frozenset(member.key for member in topology.oscar_members(record.service.federation))


def peer_of(room: Room, origin: Service, cluster_id: str) -> Peer:
    named = origin.clusters.get(cluster_id)
    return room.peers.find(cluster_id, named.endpoint if named else "")


async def as_somebody(known: list[Credentials], call: Callable[[Credentials], Awaitable[T]]) -> T:
    """Tries credentials in order until one is accepted."""
    last: PeerRefused | None = None
    for credentials in known:
        try:
            return await call(credentials)
        except PeerRefused as error:
            if error.status not in _REFUSED_US:
                raise
            last = error
    if last is not None:
        raise last
    raise errors.Unauthenticated(
        "no credentials for this cluster",
        hint="give environment.secrets.refresh_token, or auth_user and auth_password in clusters",
    )


async def each(
    items: list[T] | tuple[T, ...], call: Callable[[T], Awaitable[object]], name: Callable[[T], str]
) -> list[Failure]:
    """All at once; one that fails, in whatever way, says why and harms no other."""
    outcomes = await asyncio.gather(*(call(item) for item in items), return_exceptions=True)
    failures: list[Failure] = []
    for item, outcome in zip(items, outcomes, strict=True):
        if isinstance(outcome, HansaError):
            failures.append(Failure(name(item), outcome.message, outcome.hint))
        elif isinstance(outcome, Exception):
            _log.error("member failed", member=name(item), exc_info=outcome)
            failures.append(Failure(name(item), _unforeseen(outcome)))
        elif isinstance(outcome, BaseException):
            raise outcome
    return failures


def _unforeseen(error: Exception) -> str:
    return f"its answer could not be dealt with: {type(error).__name__}"
