"""Accept a job, or run one while the caller waits.

A job that was accepted is in the database before the caller hears of it. The same name twice is one job.
"""

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace

from hansa.identity import Caller, access
from hansa.kernel import names
from hansa.kernel.errors import Forbidden
from hansa.resources import Invocation, Needs
from hansa.services import creation, duty, events, orders, validation
from hansa.services.delegation import Parcel, Receipt, adopting, data_stores, receiving
from hansa.services.errors import ASK_FOR_MORE, BeyondQuota, QueueFull, RunFailed, ServiceNotFound
from hansa.services.job import Job, Status, new_name
from hansa.services.ports import Record, Reply, RunOrder, Waiting
from hansa.services.room import Room


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
    receiving.check_giver(caller, parcel)
    job_name = job_name or new_name(name)
    former = room.receipts.get(job_name)
    with adopting.under_way(room, record.service, job_name):
        job, fresh = await _accept(room, caller, record, body, job_name, invocation, parcel, authorization)
    if fresh:
        room.dispatcher.offer(Waiting(job.name, job.service, job.owner, job.cpu, job.memory))
        return job
    before = await room.jobs.get(job_name)
    if before is not None and before.service != name:
        raise receiving.NotTheSameJob(
            f"job {job_name} belongs to another service", hint="send another X-Delegated-Job-ID"
        )
    if before is not None and parcel is not None:
        await receiving.take_up_again(room, before, body, anew=former is None or former.permit != parcel.permit)
    return job


async def _accept(
    room: Room,
    caller: Caller,
    record: Record,
    body: bytes,
    job_name: str,
    invocation: Invocation | None,
    parcel: Parcel | None,
    authorization: str,
) -> tuple[Job, bool]:
    """The job, durable, with the keys to its data where these are elsewhere; and whether it is a new one."""
    given = events.meant(events.interpret(body), record.service)
    if parcel is not None:
        receipt: Receipt | None = await receiving.receive(room, record, parcel, body)
    else:
        receipt = await data_stores.receipt_of_worker(room, record.service, job_name, body, authorization)
    known = receipt or room.receipts.of(job_name, record.service.name)
    elsewhere = known is not None and bool(known.store)  # its own keys decide what it may read there
    if isinstance(given, events.ObjectInput) and not elsewhere:
        _check_input(room, caller, given)
    job = _job(room, record, job_name, caller.uid, body)
    if receipt is not None:
        return job, await _surely(room, job, lambda: room.receipts.accept(receipt, job, invocation))
    return job, await _surely(room, job, lambda: room.jobs.accept(job, invocation))


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
    uploader: str = "",
) -> Job | None:
    """An upload that the manager saw becomes a job, once for each object version. It is the job of the service's owner:
    with their rights and quota, for they chose the bucket; the user for whom isolation made that bucket sees it too, or
    else the uploader, if that is known. Raises `QueueFull` if the upload has to wait in its bucket:
    nothing is written down then, so that the next listing finds it again."""
    body = events.minio_event(bucket, key, size=size, etag=etag, at=float(modified), content_type=content_type)
    service = record.service
    viewer = creation.user_of(service, bucket) or uploader
    job = _job(room, record, new_name(service.name), service.owner, body, viewer)
    if not await _surely(room, job, lambda: room.jobs.accept_upload(job, bucket, key, etag, modified)):
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
    weigh: Callable[[int], None] | None = None,
) -> Reply:
    """A synchronous run: the answer is the script's output, `weigh` hears how much of it is held for who calls. With a
    `parcel` another cluster asks; otherwise `spill` may have a member answer when there is no room here."""
    record = invocable(room, caller, name)
    receiving.check_giver(caller, parcel)
    if parcel is not None:
        duty.require_open(room)
    given = events.meant(events.interpret(body), record.service)
    run_name = f"run-{uuid.uuid4().hex}"
    with adopting.under_way(room, record.service, run_name):
        if parcel is not None:
            store = await data_stores.of_parcel(room, record.service, parcel, body)
        else:
            store = (await data_stores.of_worker(room, record.service, run_name, body, authorization)).store
        if isinstance(given, events.ObjectInput) and not store:
            _check_input(room, caller, given)
        seconds = room.limits.run_limit
        order = orders.make(room, record, run_name, body, submitter=caller.uid, seconds=seconds, store=store)
        order = replace(order, weigh=weigh)
        needs = Needs(order.cpu, order.memory, order.disk, order.payer)
        never, beyond = room.dispatcher.never_fits(needs), room.dispatcher.beyond_quota(needs)
        if parcel is None and spill is not None and (never or not room.dispatcher.fits_now(needs)):
            answered = await spill(record, order, caller.uid)
            if answered is not None:
                return answered
        if never:
            raise RunFailed(f"service {name} can never run here: {never}", hint="lower its cpu, memory or disk")
        if beyond:
            raise BeyondQuota(f"service {name} cannot run for you: {beyond}", hint=ASK_FOR_MORE)
        return await room.sync_host.invoke(order)


async def _surely(room: Room, job: Job, accept: Callable[[], Awaitable[bool]]) -> bool:
    """Within the queue's limits. A job that was written down without our hearing of it must not wait for the next
    restart."""
    waiting = room.dispatcher.waiting + room.backlog.under_way
    if waiting >= room.limits.queue_limit:
        raise QueueFull(
            f"{waiting} jobs wait already", hint="try again later, or raise jobs.queue_limit", retry_after=10
        )
    with room.backlog.entering(job.name, job.owner, len(job.event), room.limits.share), room.dispatcher.surely():
        fresh = await accept()
    if not fresh:
        await _uncount(room, job.name)
    return fresh


async def _uncount(room: Room, name: str) -> None:
    """It was there before; only if it is open it counts."""
    before = await room.jobs.get(name)
    if before is None or before.ended:
        room.backlog.leave(name)


def _check_input(room: Room, caller: Caller, given: events.ObjectInput) -> None:
    """The manager fetches inputs with its own rights, so an event must not name a bucket its sender may not read.
    That the service itself reads it is no reason: its other users' inputs may lie there."""
    if room.buckets.may_use(caller.uid, given.bucket):
        return
    raise Forbidden(f"you may not read bucket {given.bucket[:63]}", hint="ask the bucket's owner to share it with you")


def _job(room: Room, record: Record, name: str, owner: str, body: bytes, viewer: str = "") -> Job:
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
        viewer=viewer,
    )


def with_status(invocation: Invocation, status: int, latency: float) -> Invocation:
    return replace(invocation, status=status, latency=latency)
