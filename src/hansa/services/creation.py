"""Create, update and delete a service: intent first, then buckets, volumes and processes, and undo on failure.

A create that dies in between is taken back at the next start, a delete is finished (`recover`); neither is ever
seen half-done by a reader.
"""

import hashlib
import secrets as randomness
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import msgspec
import structlog

from hansa.identity import Caller, access
from hansa.kernel.errors import Forbidden
from hansa.services import (
    bucket_owners,
    calling_out,
    cluster_stores,
    exposed_share,
    former_secrets,
    history,
    interpreter,
    orders,
    reading,
    replicas,
)
from hansa.services.delegation import following
from hansa.services.errors import BadService, ServiceExists
from hansa.services.job import Status
from hansa.services.listening import input_folders
from hansa.services.ports import Record
from hansa.services.room import Room
from hansa.services.secret_parts import take_out
from hansa.services.service import ORIGIN_CLUSTER, RESERVED, Service, StorageIO, provider_of, split_path

_log = structlog.get_logger("hansa.services")
_OWN_LABELS = (
    "oscar.grycap/user-service",
    "oscar_service",
    "applicationId",
    "queue",
    "owner_name",
    "uid",
    "vo",
)


@dataclass(frozen=True, slots=True)
class Written:
    """A service as it is now, what its owner should know, and the members that could not be told."""

    record: Record
    notes: tuple[str, ...] = ()
    failures: tuple[replicas.Failure, ...] = ()


async def create(room: Room, caller: Caller, definition: Service, authorization: str = "") -> Written:
    """A new service, complete when it returns: with all its replicas, if it has members. `authorization` is the
    caller's own header, with which its members' clusters are asked."""
    completed = await cluster_stores.completed(room, definition, authorization)
    service = await calling_out.normalised(room, completed, calling_out.added(definition, completed))
    _check_origin(room, service)
    await _finish(room, service.name)
    if room.records.get(service.name) is not None:
        raise ServiceExists(
            f"a service named {service.name} exists in this cluster",
            hint="choose another name, or update it with PUT",
        )
    service = await _belonging_to(room, caller, service, token=_token(definition))
    room.disk.check(service)
    exposed_share.check(room, service)
    buckets = _own_buckets(room, service)
    for bucket in _named_here(room, service):
        room.buckets.check_usable(caller, bucket)
    public, secrets = take_out(service)
    absent: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    if replicas.expands(public):
        prepared = await replicas.prepare(room, public, secrets, authorization)
        secrets, absent, notes = prepared.secrets, prepared.absent, prepared.notes
    now = room.clock.now()
    endpoints = replicas.noted(room, public, {}, by_owner=True)
    record = Record(public, 1, "creating", False, (), now, now, endpoints=endpoints)
    async with room.changing(service.name):
        async with exposed_share.within_quota(room, public):
            with room.allotment.entering(service, room.records.all()):
                await room.records.add(record, secrets)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(room.records.remove, service.name)
            record = await _make_parts(room, caller, record, secrets, buckets, undo)
            operation = await replicas.deploy(room, record, authorization, absent) if replicas.expands(public) else ""
            owners = bucket_owners.noted(room.buckets.known(_named_here(room, service)), {}, by_owner=True)
            ready = replace(record, phase="ready", bucket_owners=owners)
            record = await room.records.replace(ready, secrets, record.version, commits=operation)
            undo.pop_all()
        await _tell_store(room, service)
    await start_hosts(room, record)
    return Written(record, (*notes, *_warnings(room, service)))


async def _make_parts(
    room: Room,
    caller: Caller,
    record: Record,
    secrets: dict[str, str],
    buckets: tuple[str, ...],
    undo: AsyncExitStack,
) -> Record:
    service = record.service
    # What is about to be made is written down before it is made: a crash in between leaves a list to take back.
    missing = tuple(bucket for bucket in buckets if not room.buckets.exists(bucket))
    record = await room.records.replace(replace(record, made_buckets=missing), secrets, record.version)
    undo.push_async_callback(room.buckets.remove_made, missing, service.name, service.owner)
    await _make_buckets(room, service, buckets, caller.name)
    if service.volume is not None:
        volume = service.volume
        made = await room.volumes.for_service(
            caller, service.namespace, volume.name, volume.size, service.name, volume.lifecycle_policy
        )
        if made:
            undo.push_async_callback(room.volumes.drop, service.namespace, volume.name)
    undo.push_async_callback(room.uploads.forget_service, service.name)
    await _prepare_folders(room, service)
    return record


async def _make_buckets(room: Room, service: Service, buckets: tuple[str, ...], owner_name: str) -> None:
    """Buckets made for a service are open to whom the service is open to; one that isolation made for a user, to that
    user and to no other."""
    users = dict(_isolated(service))
    shared = [bucket for bucket in buckets if bucket not in users]
    await room.buckets.make(shared, owner=service.owner, owner_name=owner_name, service=service.name)
    await room.buckets.share_made(shared, service.name, service.owner, service.visibility, service.allowed_users)
    for bucket, user in users.items():
        await room.buckets.make(
            [bucket],
            owner=service.owner,
            owner_name=owner_name,
            service=service.name,
            visibility=access.RESTRICTED,
            allowed_users=[user],
        )


async def _prepare_folders(room: Room, service: Service) -> None:
    """Input folders exist, and what already lies in them is not news."""
    for bucket, folder in input_folders(service):
        await room.store.put(bucket, f"{folder}/", b"")
        page = ""
        while True:
            listed = await room.buckets.page(service.owner, bucket, f"{folder}/", page)
            there = [(bucket, one.key, one.etag, int(one.modified)) for one in listed.objects]
            await room.uploads.mark_seen(service.name, there, room.clock.now())
            page = listed.next_page
            if not page:
                break


async def update(room: Room, caller: Caller, definition: Service, authorization: str = "") -> Written:
    """The new definition in place of the old; blanks in secrets mean "as it was"; token, owner and namespace stay.
    Members follow as far as they can be reached; those that could not are told later."""
    notes: tuple[str, ...] = ()
    async with room.changing(definition.name):
        old = reading.owned(room, caller, definition.name, instead="choose another name")
        completed = await cluster_stores.completed(room, definition, authorization)
        told = calling_out.added(definition, completed) | calling_out.as_before(old.service, completed)
        service = await calling_out.normalised(room, completed, told)
        _check_origin(room, service)
        if service.volume != old.service.volume:
            raise BadService("the volume of a service cannot change", hint="delete the service and create it again")
        before = old.service
        service = msgspec.structs.replace(
            service,
            token=_given_token(definition) or before.token,
            owner=before.owner,
            namespace=before.namespace,
            vo=before.vo,
            bucket_list=_user_buckets(service),
        )
        room.disk.check(service)
        exposed_share.check(room, service)
        room.allotment.check_size(service, room.records.all())
        labels = _labels(service, before.owner, before.labels.get("owner_name", ""))
        service = msgspec.structs.replace(service, labels=labels)
        buckets = _own_buckets(room, service)
        for bucket in _named_here(room, service):
            room.buckets.check_usable(caller, bucket)
        kept = room.records.secrets(service.name)
        public, secrets = take_out(service, former_secrets.meant(service, kept))
        secrets = former_secrets.remember(before, public, kept, secrets)
        if replicas.expands(public):
            prepared = await replicas.prepare(room, public, secrets, authorization, before=before)
            secrets, notes = prepared.secrets, prepared.notes
        missing = tuple(bucket for bucket in buckets if not room.buckets.exists(bucket))
        made = tuple(dict.fromkeys((*old.made_buckets, *missing)))
        new_folders = [folder for folder in input_folders(service) if folder not in input_folders(before)]
        async with AsyncExitStack() as undo:
            undo.push_async_callback(room.buckets.remove_made, missing, service.name, service.owner)
            await _make_buckets(room, service, buckets, caller.name)
            if new_folders:
                await _prepare_folders(room, service)
            named = room.buckets.known(_named_here(room, service))
            by_owner = caller.uid == before.owner
            fresh = replace(
                old,
                service=public,
                made_buckets=made,
                updated=room.clock.now(),
                bucket_owners=bucket_owners.noted(named, old.bucket_owners, by_owner=by_owner),
                endpoints=replicas.noted(room, public, old.endpoints, by_owner=by_owner),
            )
            async with exposed_share.within_quota(room, public):
                record = await room.records.replace(fresh, secrets, old.version)
            undo.pop_all()
        if input_folders(service) != input_folders(before):
            await _tell_store(room, before, service)
    await start_hosts(room, record)
    notes = (*notes, *_warnings(room, service))
    return Written(record, notes, tuple(await replicas.spread(room, record, authorization)))


async def _tell_store(room: Room, *changed: Service) -> None:
    """A store that calls us does so about the folders of today."""
    if room.webhook is not None:
        await room.webhook.refresh(bucket for service in changed for bucket, _ in input_folders(service))


async def delete(
    room: Room, caller: Caller, name: str, authorization: str = "", *, workers_too: bool = True
) -> list[replicas.Failure]:
    """The service with its jobs, logs, processes and the buckets its creation made, and the workers of its members
    unless they are to be kept; a member out of reach is tidied up later."""
    async with room.changing(name):
        record = reading.owned(room, caller, name)
        removal = replicas.Removal()
        if workers_too and replicas.expands(record.service) and record.service.federation is not None:
            members = record.service.federation.members
            removal = await replicas.plan_removal(room, record, members, authorization)
        leaving = replace(record, phase="deleting")
        record = await room.records.replace(leaving, room.records.secrets(name), record.version)
        failures = await replicas.remove_workers(room, removal)
        await _finish_delete(room, record)
    return failures


async def _finish_delete(room: Room, record: Record) -> None:
    service = record.service
    await room.exposed_host.remove(service.name)
    await settle_workers(room)
    jobs = await room.jobs.names(service.name, None, frozenset(Status))
    await history.forget(room, jobs, "its service was deleted")
    await following.end_adopted(room, service.name)
    await _tell_store(room, service)
    # a bucket that another service uses by now stays, and so does everything this service did not make
    used = {bucket for other in room.records.all() if other.service.name != service.name
            for bucket in _own_buckets(room, other.service)}  # fmt: skip
    await room.buckets.remove_made([b for b in record.made_buckets if b not in used], service.name, service.owner)
    if service.volume is not None:
        await room.volumes.release(service.namespace, service.volume.name, service.name)
    await room.uploads.forget_service(service.name)
    await room.records.remove(service.name)


async def recover(room: Room) -> None:
    """Takes back creates and finishes deletes that a crash, or a store that was away, cut short."""
    for record in room.records.all():
        name = record.service.name
        try:
            await _finish(room, name)
        except Exception as error:  # the others are finished all the same
            room.complaints.tell("not finished yet", f"rest of {name}", error, service=name, phase=record.phase)
        else:
            room.complaints.passed(f"rest of {name}")


async def _finish(room: Room, name: str) -> None:
    if (record := room.records.get(name)) is None or record.phase == "ready":
        return
    async with room.changing(name):  # whoever is at work on it comes first
        record = room.records.get(name)
        if record is not None and record.phase != "ready":
            await _finish_delete(room, record)
            _log.info("finished what was cut short", service=name, phase=record.phase)


async def start_hosts(room: Room, record: Record) -> None:
    """What must run all the time for this service runs."""
    service = record.service
    if service.exposed:
        order = orders.make(room, record, service.name, b"")
        await room.exposed_host.apply(order, running=not record.stopped)
    else:
        await room.exposed_host.remove(service.name)
    await settle_workers(room)


async def settle_workers(room: Room) -> None:
    wanted = {
        record.service.name: orders.make(room, record, record.service.name, b"")
        for record in room.records.all()
        if record.phase == "ready" and record.service.synchronous.min_scale > 0
    }
    await room.sync_host.settle(wanted)


async def set_running(room: Room, caller: Caller, name: str, *, running: bool) -> Record:
    """Start or stop an exposed service; it stays so over restarts."""
    async with room.changing(name):
        record = reading.owned(room, caller, name)
        if not record.service.exposed:
            raise BadService(f"service {name} is not exposed", hint="only services with expose.api_port start and stop")
        wanted = replace(record, stopped=not running)
        if not running:
            record = await room.records.replace(wanted, room.records.secrets(name), record.version)
        else:
            async with exposed_share.within_quota(room, record.service):
                record = await room.records.replace(wanted, room.records.secrets(name), record.version)
    await start_hosts(room, record)
    return record


def _check_origin(room: Room, service: Service) -> None:
    """Only clusters that the operator knows may have made a replica, this one too. What it may do is no more than its
    owner may: the marks give no right."""
    if not service.is_replica:
        return
    origin = service.annotations.get(ORIGIN_CLUSTER, "")
    named = service.clusters.get(origin)
    if not origin:
        raise BadService(
            f"the annotations {', '.join(RESERVED)} are reserved for replicas, which clusters make of each other's",
            hint="leave them out",
        )
    room.peers.find(origin, named.endpoint if named else "")


def _own_buckets(room: Room, service: Service) -> tuple[str, ...]:
    """The buckets in our own store that a service brings: the data of a replica lives where its origin put it."""
    return () if service.is_replica else _named_here(room, service)


def _named_here(room: Room, service: Service) -> tuple[str, ...]:
    """The buckets in our own store that a service reads or writes."""
    named = _in_our_store(room, service, (*service.input, *_written(service)))
    return tuple(dict.fromkeys((*named, *service.bucket_list)))


def _warnings(room: Room, service: Service) -> tuple[str, ...]:
    """What its owner should know of how its script runs, and of where its results go."""
    written = () if service.is_replica else _in_our_store(room, service, _written(service))
    told = bucket_owners.warnings(service.owner, room.buckets.known(dict.fromkeys(written)))
    return (*interpreter.warnings(service.script), *told)


def _written(service: Service) -> tuple[StorageIO, ...]:
    return (*service.output, service.mount) if service.mount.path else service.output


def _in_our_store(room: Room, service: Service, places: Iterable[StorageIO]) -> list[str]:
    ours = room.rules().default_provider.get("endpoint")
    buckets = []
    for io in places:
        kind, ident = provider_of(io)
        if kind == "minio" and service.storage_providers.get(kind, {}).get(ident, {}).get("endpoint") == ours:
            buckets.append(split_path(io.path)[0])
    return buckets


def user_of(service: Service, bucket: str) -> str:
    """Whose bucket it is, if isolation made it for one user; else ""."""
    return dict(_isolated(service)).get(bucket, "")


def _user_buckets(service: Service) -> tuple[str, ...]:
    return tuple(bucket for bucket, _ in _isolated(service))


def _isolated(service: Service) -> list[tuple[str, str]]:
    """One bucket for each allowed user and input bucket when isolation is USER, with its user."""
    if not service.isolated_by_user:
        return []
    inputs = dict.fromkeys(split_path(io.path)[0] for io in service.input)
    short = {user: _safe(user)[:10].strip("-") for user in service.allowed_users}
    alike = Counter(short.values())
    # OSCAR cuts the name; users whose names begin alike would share a bucket, so those get a name of their own
    ends = {
        user: end if alike[end] == 1 else hashlib.sha256(user.encode()).hexdigest()[:10] for user, end in short.items()
    }
    return [(f"{bucket}-{end}", user) for bucket in inputs for user, end in ends.items()]


def _safe(user: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in user.lower()).strip("-") or "user"


def _token(definition: Service) -> str:
    """A worker's comes from its coordinator; everybody else gets a fresh one."""
    return _given_token(definition) or randomness.token_hex(32)


def _given_token(definition: Service) -> str:
    """What a coordinator sends, if it looks like a token: a worker that is taken over follows its new one."""
    given = definition.token
    usable = definition.is_worker and len(given) == 64 and all(c in "0123456789abcdef" for c in given)
    return given if usable else ""


async def _belonging_to(room: Room, caller: Caller, service: Service, token: str) -> Service:
    namespace = room.services_namespace
    if not caller.is_admin:
        if caller.kind != "user":
            raise Forbidden("a service token cannot create services", hint="sign in as a user")
        namespace = (await room.people.ensure(caller)).namespace
    if service.vo and not caller.is_admin and service.vo not in caller.groups:
        raise BadService(f"you are not a member of the group {service.vo[:60]!r}", hint="leave vo empty or name yours")
    vo = service.vo or next((group for group in room.groups if group in caller.groups), "")
    service = msgspec.structs.replace(service, token=token, owner=caller.uid, namespace=namespace, vo=vo)
    return msgspec.structs.replace(
        service, labels=_labels(service, caller.uid, caller.name), bucket_list=_user_buckets(service)
    )


def _labels(service: Service, owner: str, owner_name: str) -> dict[str, str]:
    given = {key: value for key, value in service.labels.items() if key not in _OWN_LABELS}
    ours = {
        "oscar.grycap/user-service": "true",
        "oscar_service": service.name,
        "applicationId": service.name,
        "queue": f"root.oscar-queue.{service.name}",
        "owner_name": owner_name,
        "uid": owner[:10],
    }
    if service.vo:
        ours["vo"] = service.vo
    return {**given, **ours}
