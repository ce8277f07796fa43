"""What became of the jobs we gave away? Asked of the members until each has ended, here too.

A member that tells nothing for too long, or nothing but no, loses the job: the epoch rises, which fences its run, and
the job waits here again. So does one that keeps it for longer than `allowance` allows, whatever it says meanwhile, and
does not get it again.
A run that has begun to publish its outputs is never replaced, for then two runs could be seen: its job fails at last.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import structlog

from hansa.kernel import clock
from hansa.kernel.errors import HansaError
from hansa.services import replicas
from hansa.services.delegation import allowance, claims, lending
from hansa.services.delegation.lanes import Lanes
from hansa.services.delegation.ledger import DROPPED, NOBODY, OVERDUE, Delegation
from hansa.services.delegation.telling import Telling
from hansa.services.job import Outcome, Status
from hansa.services.peers import AwayJob, Credentials, Peer, PeerRefused, PeerUnreachable, UntrustedCluster
from hansa.services.ports import Waiting
from hansa.services.room import Room

_log = structlog.get_logger("hansa.delegation")
_EVERY, _SOON, _YOUNG = 2.0, 0.25, 10.0
_AT_ONCE, _NEW = 0.1, 2.0  # most jobs are short
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True)
class Follower:
    room: Room
    lost_after: float
    _since: dict[str, float] = field(default_factory=dict)
    _parting: dict[str, float] = field(default_factory=dict)  # since when its member has left
    _over: dict[str, Telling] = field(default_factory=dict)  # all is written down, and its member has to hear of it
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """A job has just gone away."""
        self._wake.set()

    async def work(self) -> None:
        """Until cancelled."""
        lanes = Lanes(self._follow_safely)
        try:
            while True:
                self._wake.clear()
                youngest = await self._fill(lanes)
                if youngest < _NEW:
                    await asyncio.sleep(_AT_ONCE)
                elif youngest < _YOUNG:
                    await asyncio.sleep(_SOON)
                else:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._wake.wait(), _EVERY)
        finally:
            await lanes.close()

    async def _fill(self, lanes: Lanes) -> float:
        """Whatever is due gets into the lane of its member; returns how long ago the last job left, in seconds."""
        now = self.room.clock.now()
        active = [one for one in await self.room.delegations.active() if not self._is_being_offered(one)]
        for job in (self._since.keys() | self._over.keys()) - {delegation.job for delegation in active}:
            self._since.pop(job, None)
            self._parting.pop(job, None)
            self._over.pop(job, None)
            self.room.complaints.passed(_about(job))
        youngest = float("inf")
        due: list[Delegation] = []
        for delegation in active:
            age = now - self._since.setdefault(delegation.job, now)
            if over := self._over.get(delegation.job):
                if over.next <= now:
                    due.append(delegation)
                continue
            youngest = min(youngest, age)
            # one that runs for long is asked less often, so that many of them cost little
            if age < _YOUNG or now - delegation.heard >= _EVERY:
                due.append(delegation)
        lanes.fill(due)
        return youngest

    async def _follow_safely(self, delegation: Delegation) -> None:
        """Whatever a member says of one job, the others are looked after."""
        about = _about(delegation.job)
        try:
            await self.follow(delegation)
        except Exception as error:
            self.room.complaints.tell("not followed", about, error, job=delegation.job, member=delegation.cluster_id)
        else:
            self.room.complaints.passed(about)

    def _is_being_offered(self, delegation: Delegation) -> bool:
        """The hand-over itself finds out; only one that a crash cut short is ours to look into."""
        return delegation.phase == "offering" and self.room.dispatcher.is_held_back(delegation.job)

    async def follow(self, delegation: Delegation) -> None:
        room = self.room
        if not await self._has_reason(delegation):
            await self._finished(delegation)
            return
        if self._left(delegation) and await self._parted(delegation):
            return
        if over := self._over.get(delegation.job):
            await self._tell_again(delegation, over)
            return
        try:
            peer = room.peers.find(delegation.cluster_id, delegation.endpoint)
        except UntrustedCluster as error:
            await self._silent(delegation, error.message)  # it belongs to the federation no more
            return
        try:
            found = await self._asked(peer, delegation)
        except HansaError as error:
            await self._silent(delegation, error.message)  # who says no tells as little as one that is gone
            return
        except Exception as error:  # and so does one whose answer nobody foresaw
            await self._silent(delegation, f"it cannot be asked ({type(error).__name__})")
            raise
        now = room.clock.now()
        if found is None:
            # one that ended was told so, and only we had not written that down yet
            if delegation.adopted or await self._ended_at(delegation) is not None:
                await self._finished(delegation)
            else:
                await self._back(delegation, f"{delegation.cluster_id} does not have the job", _dropped(delegation))
            return
        if delegation.phase == "offering":
            await room.delegations.accepted(delegation.job, delegation.epoch, now)
        if found.status in ("Succeeded", "Failed"):
            await self._ended(delegation, peer, found)
            return
        since = now if found.started is None and found.status == "Running" else found.started
        since = claims.moment(since, delegation.given, now) if since is not None else None
        await room.delegations.heard(delegation.job, delegation.epoch, now, running_since=since)
        if why := await self._overdue(delegation):
            await self._too_long(delegation, why)

    async def _asked(self, peer: Peer, delegation: Delegation) -> AwayJob | None:
        if delegation.fenced:
            return await peer.away_job(delegation.known_as, delegation.permit)
        return await self._listed(peer, delegation)

    async def _has_reason(self, delegation: Delegation) -> bool:
        """Whether the job is still at that member for which it was lent keys to hand the job on. Whatever the member
        says: they end with the job, and when it is taken back."""
        if delegation.main is None:
            return True
        name, epoch = delegation.main
        main, job = await self.room.delegations.get(name), await self.room.jobs.get(name)
        stands = main is not None and main.epoch == epoch and main.phase in ("offering", "away")
        return stands and (job is None or not job.ended)

    def _left(self, delegation: Delegation) -> bool:
        """Whether its member belongs to the federation no more, or the federation is gone."""
        record = self.room.records.get(delegation.of_service)
        if record is None:
            return bool(delegation.of_service)
        here = (delegation.cluster_id, delegation.service)
        return all(
            (one.cluster_id, one.service_name) != here for one in replicas.oscar_members(record.service.federation)
        )

    async def _parted(self, delegation: Delegation) -> bool:
        """Nothing of ours stays there: neither the job nor keys for its data. False while its outputs are on their way,
        for they may come, if it is soon."""
        room, now = self.room, self.room.clock.now()
        why = f"{delegation.cluster_id} is no member any more"
        if delegation.publisher != NOBODY and not delegation.adopted:
            if now - self._parting.setdefault(delegation.job, now) < self.lost_after:
                return False
            await room.jobs.end(delegation.job, Outcome(False, None, f"{why}, and its outputs did not come"), now)
        if delegation.publisher != NOBODY or delegation.adopted or await self._ended_at(delegation) is not None:
            await self._finished(delegation)
        elif not await self._back(delegation, why):
            return False  # it got the right to publish in this moment
        self._parting.pop(delegation.job, None)
        await self._stop(delegation)
        return True

    async def _overdue(self, delegation: Delegation) -> str:
        """Why its member had it for long enough, or "". A member that could not reach us for a while, for we were not
        there, gets a moment to tell how the job ended, or to ask for the right to publish."""
        room, now = self.room, self.room.clock.now()
        if now - self._since.setdefault(delegation.job, now) < self.lost_after:
            return ""
        record = room.records.get(delegation.of_service)
        service = record.service if record is not None else None
        movable = delegation.fenced and not delegation.adopted and delegation.publisher == NOBODY
        least = allowance.of(service, room.limits, event=b"", slack=self.lost_after)
        if not allowance.overdue(delegation, least, now, movable=movable):
            return ""
        job = await room.jobs.get(delegation.job)  # only now, for most are never late
        allowed = allowance.of(service, room.limits, event=job.event if job else None, slack=self.lost_after)
        return allowance.overdue(delegation, allowed, now, movable=movable)

    async def _too_long(self, delegation: Delegation, why: str) -> None:
        """Whoever had it has it no more: its keys end, and nothing it says of the job counts. Where another run could
        be seen beside its own, there is none."""
        room = self.room
        if delegation.adopted or await self._ended_at(delegation) is not None:
            await self._finished(delegation)
        elif delegation.publisher != NOBODY or not delegation.fenced:
            doubt = "it may have stored outputs, so nobody else ran it"
            await room.jobs.end(delegation.job, Outcome(False, None, f"{why}; {doubt}"), room.clock.now())
            await self._finished(delegation)
        else:
            late = [*delegation.overdue, f"{delegation.cluster_id}/{delegation.service}"]
            if not await self._back(delegation, why, {OVERDUE: late}):
                return  # it got the right to publish in this moment
        await self._stop(delegation)

    async def _stop(self, delegation: Delegation) -> None:
        """As far as its member can be reached, and listens."""
        with contextlib.suppress(HansaError):
            await self._tell(delegation, self.room.peers.find(delegation.cluster_id, delegation.endpoint))

    async def _ended(self, delegation: Delegation, peer: Peer, found: AwayJob) -> None:
        room, now = self.room, self.room.clock.now()
        job = await room.jobs.get(delegation.job)
        has_log = delegation.adopted or await self._fetch_log(delegation, peer)
        told = claims.ending(found, given=delegation.given, now=now, millicores=job.cpu if job else 0)
        where = f"ran at {delegation.cluster_id}"
        outcome = Outcome(
            found.status == "Succeeded",
            found.exit_code,
            f"{where}: {found.reason}" if found.reason else where,
            told.cpu_seconds,
        )
        await room.delegations.heard(delegation.job, delegation.epoch, now, running_since=told.started)
        await room.jobs.end(delegation.job, outcome, told.finished)
        over = await self._begin_telling(delegation, job.finished if job and job.ended and job.finished else now)
        over.has_log = has_log
        await self._let_know(delegation, peer, over)

    async def _begin_telling(self, delegation: Delegation, since: float) -> Telling:
        """From now on nothing is asked of its member, which only has to hear that its job is over."""
        await lending.end(self.room, lending.of(delegation))
        over = self._over[delegation.job] = Telling(since, self.room.clock.now())
        return over

    async def _tell_again(self, delegation: Delegation, over: Telling) -> None:
        if over.enough(self.room.clock.now()):
            await self._finished(delegation)
            return
        over.put_off(self.room.clock.now())
        try:
            peer = self.room.peers.find(delegation.cluster_id, delegation.endpoint)
        except UntrustedCluster:
            return  # it may be back within the hour
        over.has_log = over.has_log or delegation.adopted or await self._fetch_log(delegation, peer)
        await self._let_know(delegation, peer, over)

    async def _let_know(self, delegation: Delegation, peer: Peer, over: Telling) -> None:
        """Our record is closed only when the member has heard: whatever comes in between, it is told again."""
        if over.has_log and await self._tell(delegation, peer):
            await self.room.delegations.finished(delegation.job, delegation.epoch, self.room.clock.now())
            self._over.pop(delegation.job, None)

    async def _finished(self, delegation: Delegation) -> None:
        room = self.room
        await room.delegations.finished(delegation.job, delegation.epoch, room.clock.now())
        await lending.end(room, lending.of(delegation))

    async def _fetch_log(self, delegation: Delegation, peer: Peer) -> bool:
        """False if trying again may help."""
        try:
            text = await _printed(self.room, peer, delegation, timestamps=True)
            job = await self.room.jobs.get(delegation.job)
            if job is not None:
                await self.room.logs.keep(job.name, text, owner=job.owner)
        except HansaError as error:
            _log.warning("log not fetched", job=delegation.job, error=error.message)
            return not _may_pass(error)
        except Exception:  # whatever comes in place of the log, the job has ended
            _log.exception("log not fetched", job=delegation.job)
            return False
        return True

    async def _tell(self, delegation: Delegation, peer: Peer) -> bool:
        """That it may forget its receipt; False if trying again may help."""
        if not delegation.fenced:
            return True
        try:
            await peer.cancel(delegation.known_as, delegation.permit)
        except HansaError as error:
            _log.info("the member keeps its receipt", job=delegation.job, error=error.message)
            return not _may_pass(error)
        return True

    async def _ended_at(self, delegation: Delegation) -> float | None:
        """When the job ended, if it has: then only its member still has to hear that we know."""
        job = await self.room.jobs.get(delegation.job)
        return job.finished if job is not None and job.ended else None

    async def _listed(self, peer: Peer, delegation: Delegation) -> AwayJob | None:
        """A member that knows no permits shows its jobs to whoever may see the service. One that is a Hansa by now is
        asked as one."""
        if await replicas.way(self.room, peer) == "key":
            return await peer.away_job(delegation.known_as, delegation.permit)
        known = await _known(self.room, delegation, peer)
        return await replicas.as_somebody(known, lambda c: peer.listed_job(delegation.service, delegation.known_as, c))

    async def _silent(self, delegation: Delegation, why: str) -> None:
        ended = await self._ended_at(delegation)
        if ended is not None:
            await self._begin_telling(delegation, ended)
            return
        now = self.room.clock.now()
        quiet = now - delegation.heard
        if quiet < self.lost_after:
            return
        if delegation.adopted and quiet >= self.room.limits.keep_receipts:
            await self._finished(delegation)  # its receipt there has an end, too
            return
        if delegation.publisher != NOBODY or not delegation.fenced or delegation.adopted:
            # its outputs are on their way, or could not be stopped: nobody else may make them
            if overdue := await self._overdue(delegation):
                await self._too_long(delegation, overdue)
            return
        await self._back(
            delegation, f"{delegation.cluster_id} was silent for {quiet:.0f} s: {why}", _dropped(delegation)
        )

    async def _back(self, delegation: Delegation, why: str, more: Mapping[str, Any] = _NOTHING) -> bool:
        """False if it is not to be had any more. Keys that the job's own origin lent end only when that takes it back,
        too: it finds the job gone here, and gives it to us or to others with new ones."""
        room = self.room
        said = {**delegation.decision, "taken_back": why, **more}
        receipt = room.receipts.get(delegation.job)
        passed_back = room.clock.now() if receipt is not None and receipt.lends else None
        with room.dispatcher.surely():
            if not await room.delegations.take_back(delegation.job, delegation.epoch, said, passed_back=passed_back):
                return False
            await lending.end(room, lending.of(delegation))
            _log.warning("taken back", job=delegation.job, why=why)
            if passed_back is not None:
                room.backlog.leave(delegation.job)
                await room.receipts.remove(delegation.job)
                return True
            job = await room.jobs.get(delegation.job)
            if job is not None and job.status is Status.PENDING:
                room.dispatcher.offer(Waiting(job.name, job.service, job.owner, job.cpu, job.memory))
                await room.jobs.explain(job.name, why)
        return True


def _dropped(delegation: Delegation) -> Mapping[str, Any]:
    """One more time, so that others come first when the job is given away again."""
    member = f"{delegation.cluster_id}/{delegation.service}"
    return {DROPPED: {**delegation.dropped, member: delegation.dropped.get(member, 0) + 1}}


def _about(job: str) -> str:
    return f"following {job}"


def _may_pass(error: HansaError) -> bool:
    """A member that is away or broken may be well later; one that says no means it."""
    return isinstance(error, PeerUnreachable) or (isinstance(error, PeerRefused) and error.status >= 500)


async def _known(room: Room, delegation: Delegation, peer: Peer) -> list[Credentials]:
    """Of people: for a member that was just seen to be one that has to be shown them."""
    job = await room.jobs.get(delegation.job)
    record = room.records.get(job.service) if job is not None else None
    if record is None:
        return []
    return await replicas.of_people(room, record.service, peer)


async def _printed(room: Room, peer: Peer, delegation: Delegation, *, timestamps: bool) -> str:
    """What the job has printed, from its member."""
    if delegation.fenced:
        return await peer.away_log(delegation.known_as, delegation.permit, timestamps=timestamps)
    return await _listed_log(room, peer, delegation, timestamps=timestamps)


async def _listed_log(room: Room, peer: Peer, delegation: Delegation, *, timestamps: bool) -> str:
    """The same of a member that knew no permits. It tells no times: its lines get the one at which they came."""
    if await replicas.way(room, peer) == "key":
        return await peer.away_log(delegation.known_as, delegation.permit, timestamps=timestamps)
    known = await _known(room, delegation, peer)
    text = await replicas.as_somebody(known, lambda c: peer.listed_log(delegation.service, delegation.known_as, c))
    if not timestamps:
        return text
    stamp = clock.rfc3339_nanos(room.clock.now())
    return "".join(f"{stamp} {line}\n" for line in text.splitlines())


async def live_log(room: Room, job: str, *, timestamps: bool) -> str | None:
    """What a job that is away has printed so far; None if it is not, or has ended: then we have its log."""
    found, known = await room.delegations.get(job), await room.jobs.get(job)
    if found is None or found.phase != "away" or known is None or known.ended:
        return None
    try:
        peer = room.peers.find(found.cluster_id, found.endpoint)
        return await _printed(room, peer, found, timestamps=timestamps)
    except HansaError as error:
        return f"the log is at {found.cluster_id}, which cannot be asked now: {error.message}\n"


async def call_off(room: Room, jobs: list[str]) -> None:
    """Jobs that are deleted here end there, as far as the members can be reached; a run that goes on is fenced."""
    for job in jobs:
        found = await room.delegations.get(job)
        if found is None or found.phase not in ("offering", "away"):
            continue
        await room.delegations.finished(job, found.epoch, room.clock.now())
        await lending.end(room, lending.of(found))
        try:
            await room.peers.find(found.cluster_id, found.endpoint).cancel(found.known_as, found.permit)
        except HansaError as error:
            _log.info("not called off", job=job, member=found.cluster_id, error=error.message)


async def end_adopted(room: Room, service: str) -> None:
    """Jobs that were submitted to replicas of this service, which goes: their keys open nothing any more. The members
    are not told, for their replicas go, too."""
    for one in await room.delegations.active():
        if one.adopted and one.of_service == service:
            await room.delegations.finished(one.job, one.epoch, room.clock.now())
            await lending.end(room, lending.of(one))
