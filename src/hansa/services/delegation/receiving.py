"""The other end: a job that another cluster hands us, and what its origin may ask about it.

Whoever knows a job's permit is its origin (or, at the origin, its runner): permits are random, per job and per epoch,
and never leave the two managers.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from hansa.identity import Caller, same_secret
from hansa.kernel import errors, names
from hansa.services import duty, replicas, validation
from hansa.services.delegation import data_stores
from hansa.services.delegation.ledger import AT_HOME, CALLED_OFF, GIVEN_BACK, LOST, Delegation, Parcel, Receipt
from hansa.services.job import Job
from hansa.services.peers import AwayJob, PeerRefused, PeerUnreachable
from hansa.services.ports import Record, Waiting
from hansa.services.room import Room
from hansa.services.service import Service

_log = structlog.get_logger("hansa.delegation")
_ASK_AGAIN = (0.2, 0.5, 1.0, 2.0, 5.0)


class Looping(errors.Conflict):
    """The job has been here before, or passed too many clusters."""

    code = "delegation.loop"


class NotTheSameJob(errors.Conflict):
    """There is a job of that name here which is somebody else's, or did not come from elsewhere."""

    code = "delegation.not-the-same-job"


class NeverFits(errors.Conflict):
    """The job is too large for this cluster, and there is nobody it could be passed on to."""

    code = "delegation.never-fits"


class NoSuchDelegation(errors.NotFound):
    """There is no such job, or the permit is not for it."""

    code = "delegation.not-found"


async def receive(room: Room, caller: Caller, record: Record, parcel: Parcel, hop_limit: int) -> Receipt:
    """The receipt to accept the job with; refuses what could not be run or delivered."""
    service = record.service
    if room.cluster_id in parcel.path:
        raise Looping(f"job {parcel.job} has been at {room.cluster_id} before")
    if len(parcel.path) > hop_limit:
        raise Looping(f"job {parcel.job} passed {len(parcel.path)} clusters already")
    before = await room.jobs.get(parcel.job)
    if before is not None:
        _require_same(room, caller, service, before)
    duty.require_open(room, before)
    never = room.dispatcher.never_fits(*validation.needs(service))
    if never and not any(member.cluster_id not in parcel.path for member in replicas.own_targets(service)):
        raise NeverFits(f"{room.cluster_id} can never run it: {never}")
    named = service.clusters.get(parcel.origin)
    peer = room.peers.find(parcel.origin, named.endpoint if named else "")  # refuses strangers
    store = await data_stores.of_parcel(room, service, parcel)
    return Receipt(
        parcel.job, parcel.origin, peer.address.endpoint, parcel.path, parcel.permit, store, room.clock.now()
    )


def _require_same(room: Room, caller: Caller, service: Service, job: Job) -> None:
    """A new permit replaces the one we know, so only whose job it is may bring it; in a mesh it may come other ways."""
    theirs = caller.kind == "user" and job.owner != caller.uid
    receipt = room.receipts.get(job.name)
    never_came = (receipt is None or receipt.ours) and job.reason not in LOST  # which take its receipt along
    if job.service != service.name or theirs or never_came:
        raise NotTheSameJob(f"there is another job {job.name} here", hint="send another X-Delegated-Job-ID")


def gate(room: Room, job: Job) -> Callable[[], Awaitable[bool]] | None:
    """What a run must pass before its outputs are published; None where there can be no other run. A job that came
    from elsewhere and may go on to others needs the right here first: our own members ask here too."""
    receipt = room.receipts.get(job.name)
    record = room.records.get(job.service)
    may_go_on = record is not None and bool(replicas.own_targets(record.service))
    if (receipt is None or receipt.ours) and not may_go_on:
        return None

    async def ask() -> bool:
        known = await room.delegations.get(job.name)
        if (may_go_on or known is not None) and not await room.delegations.may_publish(
            job.name, known.epoch if known is not None else AT_HOME
        ):
            return False
        return await _ask_origin(room, receipt) if receipt is not None and not receipt.ours else True

    return ask


async def _ask_origin(room: Room, receipt: Receipt) -> bool:
    """Until the origin answers: a finished run keeps its outputs for as long as the link is cut. A job that was given
    to us once more meanwhile has a newer permit, and the run goes on with that."""
    tries = 0
    while True:
        shown = room.receipts.get(receipt.job) or receipt
        try:
            granted = await room.peers.find(shown.origin, shown.endpoint).may_publish(shown.job, shown.permit)
            newest = room.receipts.get(receipt.job) or shown
            if granted or newest.permit == shown.permit:
                return granted
        except (PeerUnreachable, PeerRefused) as error:
            if isinstance(error, PeerRefused) and error.status < 500:
                raise
            if tries == 0:
                _log.info("the origin cannot be asked; the outputs wait", job=receipt.job, error=error.message)
            await asyncio.sleep(_ASK_AGAIN[min(tries, len(_ASK_AGAIN) - 1)])
            tries += 1


async def take_up_again(room: Room, job: Job) -> bool:
    """A run that only lost its right starts anew when its origin gives us the job once more."""
    if not await room.jobs.again(job.name, LOST):
        return False
    await room.job_host.discard(job.name)
    room.dispatcher.offer(Waiting(job.name, job.service, job.owner, job.cpu, job.memory))
    return True


# What the two managers ask each other, authorised by the permit.


def _receipt(room: Room, job: str, permit: str) -> Receipt:
    names.job(job)
    receipt = room.receipts.get(job)
    if receipt is None or receipt.ours or not same_secret(permit, receipt.permit):
        raise NoSuchDelegation(f"there is no delegated job {job} for this permit")
    return receipt


async def _delegation(room: Room, job: str, permit: str) -> Delegation:
    names.job(job)
    found = await room.delegations.get(job)
    if found is None or not found.permit or not same_secret(permit, found.permit):
        raise NoSuchDelegation(f"there is no delegated job {job} for this permit")
    return found


async def state(room: Room, job: str, permit: str) -> AwayJob:
    """At the target: how the job is."""
    _receipt(room, job, permit)
    found = await room.jobs.get(job)
    if found is None or found.reason == GIVEN_BACK:
        raise NoSuchDelegation(f"job {job} is not here")
    if await take_up_again(room, found):  # it ended just when it was given to us once more
        return AwayJob(status="Pending")
    return AwayJob(
        status=found.status.value,
        started=found.started,
        finished=found.finished,
        exit_code=found.exit_code,
        reason=found.reason,
        cpu_seconds=found.cpu_seconds,
    )


async def log(room: Room, job: str, permit: str, *, timestamps: bool) -> str:
    _receipt(room, job, permit)
    return await room.logs.read(job, timestamps=timestamps) or ""


async def cancel(room: Room, job: str, permit: str) -> None:
    """At the target: ends the job if it runs. Its record stays for its users here; the receipt goes."""
    _receipt(room, job, permit)
    await room.dispatcher.end([job], CALLED_OFF)
    await room.receipts.remove(job)


async def publish(room: Room, job: str, permit: str) -> bool:
    """At the origin: may this run show its outputs? A job that we ourselves got from elsewhere is asked for there."""
    found = await _delegation(room, job, permit)
    if not await room.delegations.may_publish(job, found.epoch):
        return False
    receipt = room.receipts.get(job)
    return await _ask_origin(room, receipt) if receipt is not None and not receipt.ours else True


async def storage(room: Room, job: str, permit: str) -> dict[str, str]:
    """At the origin: the store of this job's data, with the keys of the user it belongs to."""
    spilled = room.spilled.get(job)
    if spilled is not None and same_secret(permit, spilled.permit):
        service, owner = spilled.service, spilled.owner
    else:
        await _delegation(room, job, permit)
        receipt = room.receipts.get(job)
        if receipt is not None and receipt.store:
            return dict(receipt.store)
        found = await room.jobs.get(job)
        if found is None:
            raise NoSuchDelegation(f"job {job} is gone")
        service, owner = found.service, found.owner
    return room.store.address.with_keys(await room.store_keys(service, owner))
