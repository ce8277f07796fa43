"""Jobs of a service as their owners see them: pages, logs, deletion."""

import structlog

from hansa.identity import Caller
from hansa.kernel import names
from hansa.kernel.errors import HansaError
from hansa.services import reading
from hansa.services.delegation import following
from hansa.services.errors import JobNotFound
from hansa.services.job import ENDED, Job, Status
from hansa.services.ports import JobPage
from hansa.services.room import Room

_log = structlog.get_logger("hansa.jobs")
_AT_ONCE = 500


def _scope(caller: Caller) -> str | None:
    """Whose jobs are shown: everybody's to the admin; to a user their own, and those of their uploads."""
    return None if caller.is_admin else caller.uid


async def page(room: Room, caller: Caller, service: str, page: str) -> JobPage:
    reading.get(room, caller, service)
    return await room.jobs.page(service, _scope(caller), page, room.limits.page_size)


async def find(room: Room, caller: Caller, service: str, name: str) -> Job:
    reading.get(room, caller, service)
    names.job(name)
    job = await room.jobs.get(name)
    scope = _scope(caller)
    if job is None or job.service != service or (scope is not None and not job.shown_to(scope)):
        raise JobNotFound(f"service {service} has no job {name}", hint=f"`hansa job ls {service}` lists them")
    return job


def why(room: Room, job: Job) -> str:
    """Why it waits, or how it ended, in words. What it waits for now is not on record, for that changes all the time;
    what is on record tells how it came to wait."""
    now = room.dispatcher.why_waiting(job.name) if job.status is Status.PENDING else ""
    return "; ".join(words for words in (now, job.reason) if words)


async def log(room: Room, caller: Caller, service: str, name: str, *, timestamps: bool) -> str:
    job = await find(room, caller, service, name)
    if job.phase == "away" and (live := await following.live_log(room, job.name, timestamps=timestamps)) is not None:
        return live
    text = await room.logs.read(job.name, timestamps=timestamps)
    if text is None:
        if job.reason:
            return f"{why(room, job)}\n"
        raise JobNotFound(f"job {name} has no log yet", hint=why(room, job) or f"it is {job.status.value}")
    if job.ended and job.reason and job.reason not in text:
        return f"{text}{job.reason}\n"  # ended from outside, when nobody wrote its log
    return text


async def remove(room: Room, caller: Caller, service: str, name: str) -> None:
    """Ends the job if it runs, then forgets it with its log."""
    job = await find(room, caller, service, name)
    await forget(room, [job.name], "it was deleted")


async def remove_all(room: Room, caller: Caller, service: str, *, running_too: bool) -> None:
    reading.get(room, caller, service)
    statuses = frozenset(Status) if running_too else ENDED
    await forget(room, await room.jobs.names(service, _scope(caller), statuses), "it was deleted")


async def purge(room: Room) -> int:
    """Drops jobs, receipts, ended operations and entries of the trail whose time of keeping is over; returns how many.
    A loop calls it again while there are some."""
    now, limits = room.clock.now(), room.limits
    await room.jobs.forget_invocations(now - limits.keep)
    # first the receipts: a job is kept for as long as its origin may ask how it ended
    receipts = await room.receipts.forget(now - limits.keep_receipts, _AT_ONCE)
    old = await room.jobs.expired(now - limits.keep, _AT_ONCE)
    await following.call_off(room, old)
    stuck = await _clear(room, old)
    await _strike(room, [name for name in old if name not in stuck])
    operations = await room.operations.forget(now - limits.keep, _AT_ONCE)
    trail = await room.keyring.forget_history(now - limits.keep_audit, _AT_ONCE)
    return len(old) - len(stuck) + receipts + operations + trail


async def forget(room: Room, jobs: list[str], reason: str) -> None:
    """Ends those that run, for this reason; then nothing of them is left. Raises if one cannot go; the others have."""
    await room.dispatcher.end(jobs, reason)
    await following.call_off(room, jobs)
    stuck = await _clear(room, jobs)
    await _strike(room, [name for name in jobs if name not in stuck])
    for error in stuck.values():
        raise error


async def _clear(room: Room, jobs: list[str]) -> dict[str, HansaError | OSError]:
    """Those that cannot go now, and why. They keep no other from going, and are tried again with the next round."""
    stuck: dict[str, HansaError | OSError] = {}
    for name in jobs:
        try:
            await room.job_host.discard(name)
            await room.logs.remove(name)
        except (HansaError, OSError) as error:
            _log.warning("a job could not be forgotten yet", job=name, error=str(error))
            stuck[name] = error
    return stuck


async def _strike(room: Room, jobs: list[str]) -> None:
    # first the receipts: the keys in them must not wait for the next job of that name
    await room.receipts.remove(*jobs)
    await room.jobs.remove(jobs)
