"""The other end: a job that another cluster hands us, and what its origin may ask about it.

Whoever knows a job's permit is its origin (or, at the origin, its runner): permits are random, per job and per epoch,
and never leave the two managers.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from hansa.identity import Caller, same_secret
from hansa.kernel import errors, names
from hansa.resources import Needs
from hansa.services import duty, history, replicas, validation
from hansa.services.delegation import adopting, data_stores, lending
from hansa.services.delegation.ledger import AT_HOME, CALLED_OFF, LOST, NOT_HERE, Delegation, Parcel, Receipt
from hansa.services.job import Job
from hansa.services.peers import AwayJob, Peer, PeerRefused, PeerUnreachable
from hansa.services.ports import Record, Waiting
from hansa.services.room import Room
from hansa.services.service import ORIGIN_CLUSTER, Service

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


class UnheardEnds(errors.Temporary):
    """The origin did not ask how very many of its jobs ended, and hands over more of them."""

    code = "delegation.unheard-ends"


class NoSuchDelegation(errors.NotFound):
    """There is no such job, or the permit is not for it."""

    code = "delegation.not-found"


def check_giver(caller: Caller, parcel: Parcel | None) -> None:
    """Jobs are handed over by managers that have a token for it; that of another member's manager is good for nothing
    else, and in its own name only."""
    if parcel is not None and caller.kind != "service":
        raise errors.Forbidden(
            "only a manager that has a token of the service hands jobs over", hint="leave X-Hansa-Permit out"
        )
    if caller.giver and (parcel is None or parcel.origin != caller.giver.rpartition("/")[0]):
        raise errors.Forbidden(f"with this token {caller.giver} hands over jobs of its own, and nothing else")


async def receive(room: Room, record: Record, parcel: Parcel, body: bytes) -> Receipt:
    """The receipt to accept the job with; refuses what could not be run or delivered."""
    service = record.service
    if room.cluster_id in parcel.path:
        raise Looping(f"job {parcel.job} has been at {room.cluster_id} before")
    if len(parcel.path) > room.limits.hop_limit:
        raise Looping(f"job {parcel.job} passed {len(parcel.path)} clusters already")
    before = await room.jobs.get(parcel.job)
    if before is not None:
        _require_same(room, service, parcel, before)
    else:
        require_heard(room, parcel.origin)
    duty.require_open(room, before)
    never = _never(room, service)
    if never and not await _may_go_on(room, service, parcel):
        raise NeverFits(f"{room.cluster_id} can never run it: {never}")
    named = service.clusters.get(parcel.origin)
    peer = room.peers.find(parcel.origin, named.endpoint if named else "")  # refuses strangers
    store = await data_stores.of_parcel(room, service, parcel, body)
    if before is not None:
        if not store:
            await _require_vouched(room, peer, parcel)
        await _make_way(room, parcel, before)
    return Receipt(
        parcel.job,
        service.name,
        parcel.origin,
        peer.address.endpoint,
        parcel.path,
        parcel.permit,
        store,
        room.clock.now(),
    )


def require_heard(room: Room, origin: str) -> None:
    """What we keep of a job stays until its origin heard how it ended: who never asks would fill our memory."""
    most, kept = room.limits.unheard_ends, room.receipts.from_origin(origin)
    if len(kept) < most:
        return
    unheard = sum(not room.backlog.is_open(job) for job in kept)
    if unheard >= most:
        raise UnheardEnds(
            f"{unheard} jobs of {origin} have ended at {room.cluster_id}, and it did not ask how",
            hint=f"see whether {origin} reaches {room.cluster_id}, and follows its jobs",
            retry_after=60,
        )


async def _may_go_on(room: Room, service: Service, parcel: Parcel) -> bool:
    """One that was submitted to a replica of ours is handed on by that, and not by us: we lend the keys for it."""
    if await adopting.is_lent(room, service, parcel.job, parcel.path):
        return False
    return any(member.cluster_id not in parcel.path for member in replicas.own_targets(service))


def _never(room: Room, service: Service) -> str:
    """Neither what the cluster has nor what the owner of the replica may have is enough."""
    cpu, memory = validation.needs(service)
    needs = Needs(cpu, memory, owner=service.owner)
    return room.dispatcher.never_fits(needs) or room.dispatcher.beyond_quota(needs)


def _require_same(room: Room, service: Service, parcel: Parcel, job: Job) -> None:
    """A new permit replaces the one we know, so only who gave us the job may bring it, or the service's coordinator,
    which took it back from whoever that was. In a mesh one that was taken back may come another way."""
    receipt = room.receipts.get(job.name)
    lost = job.reason in LOST  # which take its receipt along
    came = receipt is not None and not receipt.ours
    givers = (receipt.origin if receipt is not None else "", service.annotations.get(ORIGIN_CLUSTER, ""))
    if job.service != service.name or not (lost or (came and parcel.origin in givers)):
        raise NotTheSameJob(f"there is another job {job.name} here", hint="send another X-Delegated-Job-ID")


async def _require_vouched(room: Room, peer: Peer, parcel: Parcel) -> None:
    """Whoever has the service's token can name any origin, so that one is asked whether the permit is its own. For a
    job with files that was done when its keys were asked for."""
    known = room.receipts.get(parcel.job)
    if known is not None and same_secret(known.permit, parcel.permit):
        return
    try:
        await peer.origin_storage(parcel.job, parcel.permit)
    except PeerRefused as error:
        raise NotTheSameJob(
            f"{parcel.origin} does not say that it gave us job {parcel.job}",
            hint="only the cluster that a job comes from can hand it over",
        ) from error


async def _make_way(room: Room, parcel: Parcel, job: Job) -> None:
    """For a job that comes from somebody else than before, who learns nothing of the run before. One that has not lost
    its right was brought by a cluster that does not have the job any more: nothing of it stays."""
    receipt = room.receipts.get(job.name)
    if receipt is not None and receipt.origin == parcel.origin:
        return
    if job.reason in LOST:
        await room.logs.remove(job.name)
    else:
        await history.forget(room, [job.name], CALLED_OFF)


def gate(room: Room, job: Job) -> Callable[[], Awaitable[bool]] | None:
    """What a run must pass before its outputs are published; None where there can be no other run. A job that came
    from elsewhere and may go on to others needs the right here first: our own members ask here too."""
    receipt = room.receipts.get(job.name)
    record = room.records.get(job.service)
    may_go_on = record is not None and bool(replicas.own_targets(record.service))
    asks = receipt is not None and bool(receipt.permit)
    if not asks and not may_go_on:
        return None

    async def ask() -> bool:
        known = await room.delegations.get(job.name)
        if (may_go_on or known is not None) and not await room.delegations.may_publish(
            job.name, known.epoch if known is not None else AT_HOME
        ):
            return False
        return await _ask_origin(room, receipt, room.limits.keep_receipts) if receipt is not None and asks else True

    return ask


async def _ask_origin(room: Room, receipt: Receipt, patience: float) -> bool:
    """Until the origin answers, within so many seconds: a finished run keeps its outputs while the link is cut. A job
    that was given to us once more meanwhile has a newer permit, and the run goes on with that."""
    tries, until = 0, room.clock.now() + patience
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
            if room.clock.now() >= until:
                raise PeerUnreachable(f"{shown.origin} did not say whether outputs may be stored") from error
            if tries == 0:
                _log.info("the origin cannot be asked; the outputs wait", job=receipt.job, error=error.message)
            await asyncio.sleep(_ASK_AGAIN[min(tries, len(_ASK_AGAIN) - 1)])
            tries += 1


async def take_up_again(room: Room, job: Job, body: bytes | None = None, *, anew: bool = False) -> bool:
    """A run that only lost its right starts anew when its origin gives us the job, with its body, once more. So does
    one whose script told no end: it failed by what was taken from it, such as its keys, before it was given `anew`."""
    over = (*LOST, job.reason) if anew and job.exit_code is None else LOST
    with room.dispatcher.surely():
        if not await room.jobs.again(job.name, over, body):
            return False
        room.backlog.add(job.name, job.owner, len(job.event if body is None else body))
        await room.job_host.discard(job.name)
        room.dispatcher.offer(Waiting(job.name, job.service, job.owner, job.cpu, job.memory))
    return True


# What the two managers ask each other, authorised by the permit.


def _receipt(room: Room, job: str, permit: str) -> Receipt:
    names.job(job)
    receipt = room.receipts.get(job)
    if receipt is None or not receipt.permit or not same_secret(permit, receipt.permit):
        raise NoSuchDelegation(f"there is no delegated job {job} for this permit")
    return receipt


async def _delegation(room: Room, job: str, permit: str) -> tuple[Delegation, Job | None]:
    """By its name there; with the job, unless it is none of ours. One that has ended is over for its runner, too."""
    names.job(job)
    for found in (await room.delegations.get(job), *await room.delegations.named(job)):
        if found is None or found.known_as != job or not found.permit or not same_secret(permit, found.permit):
            continue
        known = await room.jobs.get(found.job)
        if known is None or not known.ended:
            return found, known
    raise NoSuchDelegation(f"there is no delegated job {job} for this permit")


async def state(room: Room, job: str, permit: str) -> AwayJob:
    """At the target: how the job is."""
    if adopting.is_under_way(room, job, permit):
        return AwayJob(status="Running")
    try:
        _receipt(room, job, permit)
    except NoSuchDelegation:
        return await _state_of_next(room, job, permit)
    found = await room.jobs.get(job)
    if found is None or found.reason in NOT_HERE or (found.reason in LOST and found.attempt >= room.limits.attempts):
        raise NoSuchDelegation(f"job {job} is not here")
    # it ended just when it was given to us once more; not one that is being given back in this moment
    if found.reason in LOST and await take_up_again(room, found):
        return AwayJob(status="Pending")
    return AwayJob(
        status=found.status.value,
        started=found.started,
        finished=found.finished,
        exit_code=found.exit_code,
        reason=found.reason,
        cpu_seconds=found.cpu_seconds,
    )


async def _state_of_next(room: Room, job: str, permit: str) -> AwayJob:
    """Whoever has the data asks whether the cluster that we gave the job, and for which it lent keys, still has it."""
    given, found = await room.delegations.get(job), await room.jobs.get(job)
    if given is None or found is None or found.ended or not adopting.is_of_next(given, permit):
        raise NoSuchDelegation(f"there is no delegated job {job} for this permit")
    return AwayJob(status=found.status.value)


async def log(room: Room, job: str, permit: str, *, timestamps: bool) -> str:
    _receipt(room, job, permit)
    return await room.logs.read(job, timestamps=timestamps) or ""


async def cancel(room: Room, job: str, permit: str) -> None:
    """At the target: ends the job if it runs. Its record stays for its users here; the receipt goes."""
    _receipt(room, job, permit)
    await room.dispatcher.end([job], CALLED_OFF)
    await room.receipts.remove(job)


async def publish(room: Room, job: str, permit: str) -> bool:
    """At the origin: may this run show its outputs? For a job that we ourselves got from elsewhere we ask there, once:
    who asks us asks again."""
    found, _ = await _delegation(room, job, permit)
    if not await room.delegations.may_publish(found.job, found.epoch):
        return False
    receipt = room.receipts.get(found.job)
    return await _ask_origin(room, receipt, patience=0.0) if receipt is not None and receipt.permit else True


async def storage(room: Room, job: str, permit: str) -> dict[str, str]:
    """At the origin: the store of this job's data, with keys for what this job may touch."""
    spilled = room.spilled.get(job)
    if spilled is not None and same_secret(permit, spilled.permit):
        record = _record(room, job, spilled.service)
        store = await lending.lend(room, spilled.loan, record, job, spilled.event, spilled.owner)
        if room.spilled.get(job) is not spilled:  # these came late, after its keys had been ended
            await lending.end(room, spilled.loan)
            raise NoSuchDelegation(f"run {job} is over")
        return store
    given, found = await _delegation(room, job, permit)
    receipt = room.receipts.get(given.job)
    if receipt is not None and receipt.personal:
        raise errors.Forbidden("the keys of whoever submitted this job stay here")
    if found is not None and given.onward:
        return await adopting.for_next(room, _record(room, job, found.service).service, given, found.event)
    if receipt is not None and receipt.store:
        return dict(receipt.store)
    if found is None:
        raise NoSuchDelegation(f"job {job} is gone")
    record = _record(room, job, found.service)
    return await lending.lend_while(room, given, record, found.event, found.owner)


def _record(room: Room, job: str, service: str) -> Record:
    record = room.records.get(service)
    if record is None:
        raise NoSuchDelegation(f"the service of job {job} is gone")
    return record
