"""Accept a job, or run one while the caller waits.

A job that was accepted is in the database before the caller hears of it. The same name twice is one job.
"""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace

from hansa.identity import Caller, access
from hansa.kernel import names
from hansa.kernel.errors import Conflict, Forbidden, NotFound, Temporary
from hansa.resources import Invocation
from hansa.services import creation, duty, events, orders, validation
from hansa.services.delegation import Parcel, Receipt, data_stores, receiving
from hansa.services.errors import QueueFull, RunFailed, ServiceNotFound
from hansa.services.job import Job, Status, new_name
from hansa.services.ports import Record, Reply, RunOrder, Waiting
from hansa.services.room import Room
from hansa.services.service import Service


def invocable(room: Room, caller: Caller, name: str) -> Record:
    """The service, if this caller may start it. Others learn nothing, not even that it exists."""
    names.service(name)
    record = room.records.get(name)
    if record is None or record.phase != "ready":
        raise ServiceNotFound(f"there is no service {name}", hint="`hansa service ls` lists what you can see")
    service = record.service
    access.require_invocable(
        caller, name, owner=service.owner, visibility=service.visibility, allowed=service.allowed_users
    )
    return record


async def submit(
    room: Room,
    caller: Caller,
    name: str,
    body: bytes,
    *,
    job_name: str = "",
    invocation: Invocation | None = None,
    parcel: Parcel | None = None,
    authorization: str = "",
) -> Job:
    """Accepts a job and returns once it is durable. A `parcel` came with it if another cluster hands it over; with the
    caller's `authorization` a worker gets at the data of its federation."""
    record = invocable(room, caller, name)
    receipt = None
    if parcel is not None:
        receipt = await receiving.receive(room, caller, record, parcel, room.limits.hop_limit)
    elif store := await _home_store(room, record.service, body, authorization):
        job_name = job_name or new_name(name)
        receipt = Receipt(job_name, room.cluster_id, room.own_endpoint, (), "", store, room.clock.now())
    known = receipt or (room.receipts.get(job_name) if job_name else None)
    elsewhere = known is not None and bool(known.store)  # its own keys decide what it may read there
    if room.dispatcher.waiting >= room.limits.queue_limit:
        raise QueueFull(
            f"{room.dispatcher.waiting} jobs wait already",
            hint="try again later, or raise jobs.queue_limit",
            retry_after=10,
        )
    given = events.interpret(body)
    if isinstance(given, events.ObjectInput) and given.provider == "default" and not elsewhere:
        _check_input(room, caller, given)
    job = _job(room, record, job_name or new_name(name), _submitter(room, caller, given), body)
    if receipt is not None:
        fresh = await _surely(room, room.receipts.accept(receipt, job, invocation))
    elif room.webhook is not None and caller.kind == "service" and isinstance(given, events.ObjectInput):
        fresh = await _surely(room, _accept_notified(room, job, given))
    else:
        fresh = await _surely(room, room.jobs.accept(job, invocation))
    if fresh:
        room.dispatcher.offer(Waiting(job.name, job.service, job.owner, job.cpu, job.memory))
    elif job_name:
        before = await room.jobs.get(job_name)
        if before is not None and before.service != name:
            raise Conflict(f"job {job_name} belongs to another service", hint="send another X-Delegated-Job-ID")
        if before is not None and parcel is not None:
            await receiving.take_up_again(room, before)
    return job


async def submit_upload(
    room: Room,
    record: Record,
    *,
    bucket: str,
    key: str,
    etag: str,
    modified: int,
    size: int,
    content_type: str = "",
) -> Job | None:
    """An upload the manager itself saw becomes a job, once for each object version."""
    body = events.minio_event(bucket, key, size=size, etag=etag, at=float(modified), content_type=content_type)
    owner = creation.user_of(record.service, bucket) or room.buckets.owner_of(bucket) or record.service.owner
    job = _job(room, record, new_name(record.service.name), owner, body)
    if not await _surely(room, room.jobs.accept_upload(job, bucket, key, etag, modified)):
        return None
    room.dispatcher.offer(Waiting(job.name, job.service, job.owner, job.cpu, job.memory))
    return job


async def run(
    room: Room,
    caller: Caller,
    name: str,
    body: bytes,
    *,
    parcel: Parcel | None = None,
    authorization: str = "",
    spill: Callable[[Record, RunOrder, str], Awaitable[Reply | None]] | None = None,
) -> Reply:
    """A synchronous run: the answer is the script's output. With a `parcel` another cluster asks; otherwise `spill`
    may have a member answer when there is no room here."""
    record = invocable(room, caller, name)
    if parcel is not None:
        duty.require_open(room)
    given = events.interpret(body)
    if parcel is not None:
        store = await data_stores.of_parcel(room, record.service, parcel)
    else:
        store = await _home_store(room, record.service, body, authorization)
    if isinstance(given, events.ObjectInput) and given.provider == "default" and not store:
        _check_input(room, caller, given)
    order = orders.make(room, record, f"run-{uuid.uuid4().hex}", body, seconds=room.limits.run_limit, store=store)
    never = room.dispatcher.never_fits(order.cpu, order.memory)
    if parcel is None and spill is not None and (never or not room.dispatcher.fits_now(order.cpu, order.memory)):
        answered = await spill(record, order, caller.uid)
        if answered is not None:
            return answered
    if never:
        raise RunFailed(f"service {name} can never run here: {never}", hint="lower its cpu or memory")
    return await room.sync_host.invoke(order)


async def _home_store(room: Room, service: Service, body: bytes, authorization: str) -> dict[str, str]:
    """What needs no files runs without the store, and when its origin is away."""
    if not (service.output or service.mount.path or isinstance(events.interpret(body), events.ObjectInput)):
        return {}
    return await data_stores.of_worker(room, service, authorization)


async def _surely(room: Room, accepting: Awaitable[bool]) -> bool:
    """A job that was written down without our hearing of it must not wait for the next restart."""
    try:
        return await accepting
    except Temporary:
        room.dispatcher.look_again()
        raise


def _check_input(room: Room, caller: Caller, given: events.ObjectInput) -> None:
    """The manager fetches inputs with its own rights, so an event must not name a bucket its sender may not read.
    That the service itself reads it is no reason: its other users' inputs may lie there."""
    if room.buckets.may_use(caller.uid, given.bucket):
        return
    raise Forbidden(f"you may not read bucket {given.bucket[:63]}", hint="ask the bucket's owner to share it with you")


async def _accept_notified(room: Room, job: Job, given: events.ObjectInput) -> bool:
    """The store's webhook may tell an upload twice, and the reconciliation may have found it before."""
    try:
        found = await room.store.head(given.bucket, given.key)
    except NotFound:
        return await room.jobs.accept(job)
    return await room.jobs.accept_upload(job, given.bucket, given.key, found.etag, int(found.modified))


def _submitter(room: Room, caller: Caller, given: events.ObjectInput | events.BytesInput) -> str:
    """Whose job it is: the caller's; for the store's own events the uploader's, where the store tells."""
    if caller.kind == "service" and isinstance(given, events.ObjectInput) and given.principal:
        uploader = room.people.by_key(given.principal)
        return uploader.uid if uploader else caller.uid
    return caller.uid


def _job(room: Room, record: Record, name: str, owner: str, body: bytes) -> Job:
    cpu, memory = validation.needs(record.service)
    return Job(
        name=name,
        service=record.service.name,
        owner=owner,
        status=Status.PENDING,
        created=room.clock.now(),
        cpu=cpu,
        memory=memory,
        event=body,
    )


def with_status(invocation: Invocation, status: int, latency: float) -> Invocation:
    return replace(invocation, status=status, latency=latency)
