"""Gives a waiting job to a member: rank them, claim the job, offer it, and be sure of the answer.

The claim is durable before the first byte is sent, so after a crash we know whom to ask. A refusal leads to the next
member; an answer that got lost is looked into before anybody else is tried; if nobody takes the job it waits here.
One that has another job of that name is offered it under a new one.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog

from hansa.kernel.errors import HansaError
from hansa.resources import Needs
from hansa.services import replicas
from hansa.services.delegation import adopting, lending, policies
from hansa.services.delegation.ledger import ONWARD, Delegation
from hansa.services.delegation.offers import Offers, beginning, delegation
from hansa.services.delegation.places import Crowded, Places
from hansa.services.delegation.policies import Candidate, Ranking
from hansa.services.delegation.probing import Seen, WaitFor
from hansa.services.job import Job, Outcome, Status, new_name
from hansa.services.peers import (
    Handover,
    NameTaken,
    Peer,
    PeerHistory,
    PeerRefused,
    PeerStatus,
    PeerUnreachable,
    UntrustedCluster,
)
from hansa.services.ports import Record, Waiting
from hansa.services.room import Room
from hansa.services.service import Member, Service

_log = structlog.get_logger("hansa.delegation")
_TICK = 1.0
_ASK_AGAIN = (0.2, 0.5, 1.0, 2.0)
_UNKNOWN = "unknown"
_KEPT_TOO_LONG = "it had this job before, and for too long"
_Answer = Literal[
    "has it",  # this member, or one that was offered the job before
    "not ours",  # the job ended, or started here: nobody else is asked
    "next",  # this member does not have the job: the next one is asked
    "name taken",  # this member has another job of that name
]


@dataclass(slots=True)
class _Tried:
    at: float
    running: bool = False


@dataclass(slots=True)
class Delegator:
    """Offers what cannot start here. One per manager."""

    room: Room
    threshold: float
    patience: float
    hop_limit: int
    formula: str
    on_gone: Callable[[], None] = lambda: None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _tried: dict[str, _Tried] = field(default_factory=dict)
    _in_flight: dict[str, list[tuple[float, Needs]]] = field(default_factory=dict)
    _places: Places = field(default_factory=Places)

    def wake(self) -> None:
        """Something could not start here just now."""
        self._wake.set()

    def hurry(self) -> None:
        """Everything that waits is offered now, whenever it last was: this cluster drains."""
        for name in [name for name, tried in self._tried.items() if not tried.running]:
            del self._tried[name]
        self._wake.set()

    def offer_now(self, name: str) -> None:
        """Whenever it last was."""
        self._tried.pop(name, None)
        self._wake.set()

    def in_vain(self, name: str) -> bool:
        """Whether it was offered, and nobody took it."""
        tried = self._tried.get(name)
        return tried is not None and not tried.running

    async def work(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                try:
                    async with asyncio.timeout(_TICK):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                self._wake.clear()
                for waiting in self._due():
                    self._tried[waiting.name] = _Tried(self.room.clock.now(), running=True)
                    tasks.create_task(self._offer_safely(waiting), name=f"offer {waiting.name}")

    def _due(self) -> list[Waiting]:
        """Jobs that wait here, may go elsewhere, and were not offered within their threshold."""
        now = self.room.clock.now()
        waiting = self.room.dispatcher.pending()
        names = {one.name for one in waiting}
        for name in [name for name, tried in self._tried.items() if name not in names and not tried.running]:
            del self._tried[name]
        due: list[Waiting] = []
        for one in waiting:
            record = self.room.records.get(one.service)
            if record is None or not replicas.own_targets(record.service):
                continue
            tried = self._tried.get(one.name)
            if tried is None or (not tried.running and now - tried.at >= self._threshold(record.service)):
                due.append(one)
        return due

    def _threshold(self, service: Service) -> float:
        own = service.federation.rescheduler_threshold if service.federation else 0
        return float(own or self.threshold)

    async def _offer_safely(self, waiting: Waiting) -> None:
        try:
            await self._offer_in_turn(waiting)
        except HansaError as error:
            _log.warning("not delegated", job=waiting.name, error=error.message)
        except Exception:
            _log.exception("delegation failed", job=waiting.name)
        finally:
            self._tried[waiting.name] = _Tried(self.room.clock.now())
            if self.room.duty.draining or waiting.name in self.room.dispatcher.turned_away:
                self.room.dispatcher.wake()  # it may start here now, if nobody took it

    async def _offer_in_turn(self, waiting: Waiting) -> None:
        """Whoever waits for a busy member takes nothing from jobs that go elsewhere."""
        busy = ""
        while True:
            try:
                async with self._places.taken(busy):
                    await self.offer(waiting, busy)
                return
            except Crowded as error:
                busy = error.where

    async def offer(self, waiting: Waiting, kept: str = "") -> bool:
        """True if a member has the job now. Raises `Crowded` if it is the turn of one that has offers enough, other
        than the one at which a place is `kept`."""
        room, name = self.room, waiting.name
        record, receipt = room.records.get(waiting.service), room.receipts.get(name)
        if record is None:
            return False
        async with self._places.ranking:
            if receipt is not None and await adopting.is_lent(room, record.service, name, receipt.path):
                return False  # whoever it was submitted to hands it on, with keys that we lend
            before = await room.delegations.get(name)
        ranking = await self.decide(record, waiting, before.overdue if before else ())
        if not ranking.order:
            await self._explain(name, "no member can take it", _in_words(ranking.refused))
            return False
        async with self._places.ranking:  # only now: bodies may be large, and many jobs may wait for members' answers
            job = await room.jobs.get(name)
        if job is None or job.status is not Status.PENDING or job.phase != "here":
            return False
        with room.dispatcher.held_back(job.name) as ours:
            if not ours:
                return False  # it has just started here
            if before is not None and before.dropped:
                ranking = policies.behind_others(ranking, before.dropped)
            return await self._offer_in_order(record, job, ranking, before, kept)

    async def decide(self, record: Record, job: Job | Waiting, overdue: Collection[str] = ()) -> Ranking:
        """Every member ranked or refused, from what is known now: those that are `overdue` had the job for too long.
        Only if that leaves nobody are those that have not answered yet waited for."""
        static = record.service.federation is None or record.service.federation.delegation in ("", "static")
        ranking, awaited = await self._rank(record.service, job, overdue, "nobody" if static else "most")
        if awaited and not ranking.order:
            ranking, _ = await self._rank(record.service, job, overdue, "all")
        return ranking

    async def _rank(
        self, service: Service, job: Job | Waiting, overdue: Collection[str], wait_for: WaitFor
    ) -> tuple[Ranking, bool]:
        """Also tells whether a member is still being asked."""
        federation = service.federation
        assert federation is not None
        policy = federation.delegation or "static"
        targets = replicas.own_targets(service)
        asked = {member.key: _probe_key(service, member) for member in targets if member.type.lower() == "oscar"}
        seen = await self.room.prober.look(
            [
                (asked[member.key], self._probe(service, member, with_history=policy == "topsis"))
                for member in targets
                if member.key in asked
            ],
            wait_for,
        )
        async with self._places.ranking:
            ranking = self._ranked(service, job, overdue, {member: seen[key] for member, key in asked.items()})
            await asyncio.sleep(0)  # many may have waited for one answer: others get a turn between them
        return ranking, any(one.awaited for one in seen.values())

    def _ranked(
        self, service: Service, job: Job | Waiting, overdue: Collection[str], seen: Mapping[str, Seen]
    ) -> Ranking:
        federation = service.federation
        assert federation is not None
        policy = federation.delegation or "static"
        candidates: list[Candidate] = []
        for member in replicas.own_targets(service):
            found = seen.get(member.key)
            if found is None:  # an endpoint, which is not asked
                candidates.append(Candidate(member))
                continue
            trouble = _KEPT_TOO_LONG if member.key in overdue else self._passed(job, member)
            if not trouble and (policy != "static" or found.resting):
                trouble = found.trouble
            in_flight = self._since(member.key, found.at)
            candidates.append(Candidate(member, found.status, trouble, found.history, in_flight))
        weights = federation.weights if federation.weights else {}
        assert isinstance(weights, dict)
        needs = Needs(job.cpu, job.memory)
        return policies.rank(federation.delegation, candidates, needs, weights=weights, formula=self.formula)

    def _passed(self, job: Job | Waiting, member: Member) -> str:
        """Why the way a job has come excludes this member, or ""."""
        receipt = self.room.receipts.get(job.name)
        path = receipt.path if receipt is not None else ()
        if receipt is not None and receipt.personal:
            return "the job has the store keys of whoever submitted it, which stay here: submit it at the coordinator"
        if member.cluster_id in (self.room.cluster_id, *path):
            return "the job came through it"
        return f"the job passed {len(path)} clusters already" if len(path) >= self.hop_limit else ""

    def _probe(
        self, service: Service, member: Member, *, with_history: bool
    ) -> Callable[[float], Awaitable[tuple[PeerStatus, PeerHistory | None]]]:
        async def ask(timeout: float) -> tuple[PeerStatus, PeerHistory | None]:
            peer = replicas.peer_of(self.room, service, member.cluster_id)
            known = await replicas.for_jobs(self.room, service, member, peer, await replicas.way(self.room, peer))
            status = await replicas.as_somebody(known, lambda c: peer.status(c, timeout))
            history = None
            if with_history:
                history = await replicas.as_somebody(known, lambda c: peer.history(member.service_name, c, timeout))
            return status, history

        return ask

    def _since(self, key: str, at: float) -> Needs:
        """What was handed to a member after its figures were taken."""
        recent = [(when, needs) for when, needs in self._in_flight.get(key, []) if when > at]
        self._in_flight[key] = recent
        return Needs(sum(needs.cpu for _, needs in recent), sum(needs.memory for _, needs in recent))

    async def _offer_in_order(
        self, record: Record, job: Job, ranking: Ranking, before: Delegation | None, kept: str
    ) -> bool:
        places, crowded = self._places, ""
        offers = Offers(record, job, before.epoch if before else 0, beginning(record.service, ranking, before))
        try:
            offers.said[ONWARD] = await adopting.lends_onward(self.room, record.service, job)
        except HansaError as error:
            await self._explain(job.name, "the coordinator cannot be asked for keys for another cluster", error.message)
            return False
        turns = deque((member, "") for member in ranking.order)
        while turns:
            member, named = turns.popleft()
            is_endpoint = member.type.lower() == "endpoint"
            peer = None if is_endpoint else self._trusted(record.service, member, offers.said)
            if peer is None and not is_endpoint:
                continue
            # endpoints anybody may name as many as they like of
            where = f"endpoints of {record.service.owner}" if peer is None else peer.address.endpoint
            if crowded := places.crowded(where, kept):
                break
            async with places.taken(where, kept):
                if peer is None:
                    answer = await self._to_endpoint(offers, member)
                else:
                    answer = await self._to_member(offers, member, peer, named)
            match answer:
                case "has it":
                    return True
                case "not ours":
                    return False
                case "name taken" if not named:
                    del offers.said["refused"][member.key]
                    turns.appendleft((member, new_name(member.service_name)))  # which nobody can have heard before
        offers.said["chosen"] = ""
        if not await self._nobody_has(offers):
            return True  # one whose answer got lost has it after all, and is publishing
        await self._wait_here(job, offers.said, crowded)
        return False

    async def _to_member(self, offers: Offers, member: Member, peer: Peer, named: str) -> _Answer:
        room, record, job = self.room, offers.record, offers.job
        way, why = await self._way(record.service, member, peer)
        if way is None:
            offers.said["refused"][member.key] = why
            return "next"
        offers.epoch += 1
        offers.said |= {"chosen": member.key, "fenced": way == "key"}
        fresh = delegation(job.name, offers.epoch, "offering", member, peer, offers.said, room.clock.now(), named)
        if not await room.delegations.claim(fresh):
            return "has it" if offers.claimed else "not ours"  # one that was offered it before may be publishing
        offers.claimed = True
        await self._end_keys(job, offers.refused)
        verdict, name_taken = await self._hand_over(record, job, member, peer, fresh, way)
        if verdict == _UNKNOWN:
            return "has it"  # or not: the follower finds out
        if verdict:
            offers.said["refused"][member.key] = verdict
            offers.refused.append(offers.epoch)
            return "name taken" if name_taken else "next"
        await room.delegations.accepted(job.name, offers.epoch, room.clock.now())
        room.dispatcher.gone(job.name)
        self.on_gone()
        self._in_flight.setdefault(member.key, []).append((room.clock.now(), Needs(job.cpu, job.memory)))
        _log.info("delegated", job=job.name, member=member.key, policy=offers.said["policy"])
        return "has it"

    async def _nobody_has(self, offers: Offers) -> bool:
        """Whoever was offered the job has it no more, nor keys for it; False if one of them is publishing."""
        if offers.claimed:
            if not await self.room.delegations.take_back(offers.job.name, offers.epoch, offers.said):
                return False
            offers.claimed = False
            offers.epoch += 1
        await self._end_keys(offers.job, offers.refused)
        return True

    async def _wait_here(self, job: Job, said: dict[str, Any], crowded: str) -> None:
        if crowded:
            raise Crowded(crowded)
        await self._explain(job.name, "no member took it", _in_words(said["refused"]))

    async def _explain(self, job: str, what: str, why: str) -> None:
        await self.room.jobs.explain(job, f"waits for room here; {what} ({why})")

    def _trusted(self, service: Service, member: Member, said: dict[str, Any]) -> Peer | None:
        try:
            return replicas.peer_of(self.room, service, member.cluster_id)
        except UntrustedCluster as error:
            said["refused"][member.key] = error.message
            return None

    async def _end_keys(self, job: Job, epochs: list[int]) -> None:
        """Of those who refused: only once they are fenced, for one of them may have the job nevertheless."""
        while epochs:
            await lending.end(self.room, lending.of_epoch(job.name, epochs.pop()))

    async def _way(self, service: Service, member: Member, peer: Peer) -> tuple[replicas.Way | None, str]:
        """How the member is given the job, and asked about it until the job ends; or why it gets none."""
        try:
            return await replicas.way(self.room, peer), ""
        except PeerUnreachable as error:
            self.room.prober.failed(_probe_key(service, member), error.message)
            return None, error.message
        except HansaError as error:
            return None, error.message
        except Exception as error:
            return None, self._unforeseen(service, member, error)

    def _unforeseen(self, service: Service, member: Member, error: Exception) -> str:
        """Whatever one member answers, the job goes on to the next, or waits here."""
        _log.error("a member answers what nobody foresaw", member=member.key, exc_info=error)
        why = f"it cannot be asked ({type(error).__name__})"
        self.room.prober.failed(_probe_key(service, member), why)
        return why

    async def _hand_over(
        self, record: Record, job: Job, member: Member, peer: Peer, fresh: Delegation, way: replicas.Way
    ) -> tuple[str, bool]:
        """ "" when the member has it for certain, else why not (and then certainly fenced by the next epoch); and
        whether that is the job's name alone."""
        room, service = self.room, record.service
        receipt = room.receipts.get(job.name)
        path = (*receipt.path, room.cluster_id) if receipt else (room.cluster_id,)
        handover = Handover(
            service=member.service_name,
            job=fresh.known_as,
            body=job.event,
            from_service=service.name,
            origin=room.cluster_id,
            path=path,
            permit=fresh.permit,
            headers=member.headers or {},
        )
        try:
            known = await replicas.for_jobs(room, service, member, peer, way)
            bearers = [one for one in known if replicas.is_bearer(one)]
            await replicas.as_somebody(bearers, lambda c: peer.hand_over(handover, c))
            return "", False
        except PeerRefused as error:
            return f"it refused ({error.status}): {error.message}", isinstance(error, NameTaken)
        except PeerUnreachable as error:
            room.prober.failed(_probe_key(service, member), error.message)
            if not error.sent:
                return error.message, False  # not a byte of it left
            return await self._find_out(peer, fresh, error.message), False
        except HansaError as error:
            return error.message, False  # there is nothing that it could be shown
        except Exception as error:  # it may have the job
            return await self._find_out(peer, fresh, self._unforeseen(service, member, error)), False

    async def _find_out(self, peer: Peer, fresh: Delegation, why: str) -> str:
        """The answer was lost: does the member have the job? Asked until it says or our patience is over."""
        if not fresh.fenced:
            return _UNKNOWN  # it knows no permits, so its run could not be fenced: nobody else may get the job
        deadline = asyncio.get_running_loop().time() + self.patience
        tries = 0
        while asyncio.get_running_loop().time() < deadline:
            try:
                if await peer.away_job(fresh.known_as, fresh.permit) is not None:
                    return ""
                return f"{why}; it says it never got the job"
            except PeerRefused as error:
                return f"{why}; asked again it refused ({error.status})"
            except Exception:  # it is away, or answers what nobody foresaw
                await asyncio.sleep(_ASK_AGAIN[min(tries, len(_ASK_AGAIN) - 1)])
                tries += 1
        return f"{why}; it could not be asked whether it has the job"

    async def _to_endpoint(self, offers: Offers, member: Member) -> _Answer:
        """A plain HTTP endpoint takes the event and tells no more: the job ends with its answer."""
        room, job = self.room, offers.job
        if not await self._nobody_has(offers):
            return "has it"
        try:
            await room.peers.post_event(member.url, job.event, member.headers or {}, verify=member.ssl_verify)
        except HansaError as error:
            offers.said["refused"][member.key] = error.message
            return "next"
        ended = Outcome(True, None, f"handed to {member.url}")
        # in this order: one that could not be written down goes on waiting
        was_open = await room.jobs.end(job.name, ended, room.clock.now())
        room.dispatcher.gone(job.name)
        return "has it" if was_open else "next"


def _in_words(refused: Mapping[str, str]) -> str:
    return "; ".join(f"{key}: {why}" for key, why in refused.items())


def _probe_key(service: Service, member: Member) -> str:
    """Each service asks for itself, with what it may show there: a replica that is gone or a token that was revoked
    must not count against the cluster for others."""
    return f"{service.name} {member.key}"
