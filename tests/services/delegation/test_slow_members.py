"""Members that take their time over every job they are offered: do hand-overs to others go on?"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from hansa.services import Address, Credentials, Job, Service, Status, Waiting, replicas
from hansa.services.delegation import Prober, Ranking, places
from hansa.services.delegation.handover import Delegator
from hansa.services.peers import NodeRoom, PeerStatus

_EACH = 10  # more than one member is offered at once
_WITHIN = 20.0


class Clock:
    def now(self) -> float:
        return 1000.0


class Static(Delegator):
    """Everybody may have every job."""

    async def decide(self, record: Any, job: Job | Waiting, overdue: Any = ()) -> Ranking:
        return Ranking(tuple(record.service.federation.members))


class Origin:
    """One service for each member; members that are `slow` never answer."""

    def __init__(self, *members: dict[str, Any], policy: str = "static") -> None:
        self.slow: set[str] = set()
        self.under_way: dict[str, int] = {}
        self.waiting: list[Waiting] = []
        self.handed: asyncio.Queue[str] = asyncio.Queue()
        self.services = {f"for-{number}": _service(number, one, policy) for number, one in enumerate(members)}
        jobs = SimpleNamespace(get=self._job, explain=self._yes, end=self._yes)
        ledger = SimpleNamespace(get=self._nothing, claim=self._yes, accepted=self._yes, take_back=self._yes)
        self.room: Any = SimpleNamespace(
            cluster_id="lubeck",
            clock=Clock(),
            duty=SimpleNamespace(draining=False),
            dispatcher=SimpleNamespace(
                pending=lambda: list(self.waiting), held_back=_held_back, gone=self._gone, turned_away=set(), wake=_noop
            ),
            records=SimpleNamespace(get=lambda name: SimpleNamespace(service=self.services[name])),
            jobs=jobs,
            delegations=ledger,
            receipts=SimpleNamespace(get=lambda _: None),
            key_holders=SimpleNamespace(add=self._yes),
            peers=SimpleNamespace(find=self._peer, post_event=self._post),
            prober=Prober(Clock(), ttl=1.0, timeout=3600.0),
        )

    def submit(self, service: str, job: str) -> None:
        self.waiting.append(Waiting(job, service, "alice", 100, 1))

    async def answer(self, where: str) -> None:
        self.under_way[where] = self.under_way.get(where, 0) + 1
        try:
            if where in self.slow:
                await asyncio.Event().wait()
        finally:
            self.under_way[where] -= 1

    def _peer(self, cluster: str, _endpoint: str) -> Any:
        async def hand_over(*_: Any) -> None:
            await self.answer(cluster)

        async def capabilities() -> frozenset[str]:
            return replicas.showing.NEEDED

        async def status(*_: Any) -> PeerStatus:
            await self.answer(cluster)
            return PeerStatus(0.1, (NodeRoom(4000, 2**30),), 1, 4000, 2**30, 4000, 4000, 2**30)

        address = Address(cluster, f"https://{cluster}", kind="hansa")
        return SimpleNamespace(address=address, hand_over=hand_over, capabilities=capabilities, status=status)

    async def _post(self, url: str, *_: Any, **__: Any) -> None:
        await self.answer(url)

    def _gone(self, job: str) -> None:
        self.waiting = [one for one in self.waiting if one.name != job]
        self.handed.put_nowait(job)

    async def _job(self, name: str) -> Job:
        service = next(one.service for one in self.waiting if one.name == name)
        return Job(name, service, "alice", Status.PENDING, 0.0, 100, 1, b"")

    async def _nothing(self, *_: Any, **__: Any) -> None:
        return None

    async def _yes(self, *_: Any, **__: Any) -> bool:
        return True


def _service(number: int, member: dict[str, Any], policy: str) -> Service:
    federation = {"topology": "star", "members": [member], "delegation": policy}
    return msgspec.convert({"name": f"for-{number}", "owner": "alice", "federation": federation}, Service)


def _noop() -> None:
    return


@contextlib.contextmanager
def _held_back(_job: str) -> Iterator[bool]:
    yield True


@contextlib.asynccontextmanager
async def offering(origin: Origin, kind: type[Delegator] = Static) -> AsyncIterator[None]:
    delegator = kind(origin.room, threshold=1000.0, patience=1.0, hop_limit=3, formula="")
    task = asyncio.create_task(delegator.work())
    try:
        yield
        assert not task.done(), "the loop has stopped"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await origin.room.prober.close()


@pytest.fixture(autouse=True)
def everybody_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    async def for_jobs(*_: Any) -> list[Credentials]:
        return [Credentials("Bearer token")]

    monkeypatch.setattr(replicas, "for_jobs", for_jobs)


def cluster(name: str) -> dict[str, Any]:
    return {"type": "oscar", "cluster_id": name, "service_name": "gray"}


@pytest.mark.parametrize("many", [4, 12, 40])
async def test_however_many_are_slow_jobs_go_to_others(many: int) -> None:
    names = [f"slow-{number}" for number in range(many)]
    origin = Origin(*map(cluster, names), cluster("quick"))
    origin.slow = set(names)
    for number in range(many):
        for job in range(_EACH):
            origin.submit(f"for-{number}", f"slow-{number}-{job}")
    origin.submit(f"for-{many}", "one")
    async with offering(origin), asyncio.timeout(_WITHIN):
        assert await origin.handed.get() == "one"
        for later in ("two", "three"):
            origin.submit(f"for-{many}", later)
            assert await origin.handed.get() == later
        assert sum(origin.under_way.values()) <= 32 + 3 * many
        assert max(origin.under_way.values()) <= 8


async def test_nor_do_they_hold_up_others_while_they_are_asked_how_they_are() -> None:
    many = 40  # more than are ranked at once
    names = [f"slow-{number}" for number in range(many)]
    origin = Origin(*map(cluster, names), cluster("quick"), policy="load-based")
    origin.slow = set(names)
    for number in range(many):
        origin.submit(f"for-{number}", f"slow-{number}")
    origin.submit(f"for-{many}", "one")
    async with offering(origin, Delegator), asyncio.timeout(_WITHIN):
        assert await origin.handed.get() == "one"
        assert origin.under_way["slow-39"] == 1, "it is being asked"


async def test_endpoints_of_one_owner_have_the_places_of_one_member() -> None:
    """Each may name as many as they like."""
    many = 40
    urls = [f"https://slow-{number}.example.org/hook" for number in range(many)]
    origin = Origin(*({"type": "endpoint", "url": url} for url in urls), cluster("quick"))
    origin.slow = set(urls)
    for number in range(many):
        origin.submit(f"for-{number}", f"slow-{number}")
    origin.submit(f"for-{many}", "one")
    async with offering(origin), asyncio.timeout(_WITHIN):
        assert await origin.handed.get() == "one"
        assert sum(origin.under_way.values()) <= 8


async def test_a_member_that_answers_again_gets_all_that_waited() -> None:
    origin = Origin(cluster("visby"))
    freed, offers = asyncio.Event(), asyncio.Queue[str]()

    async def until_freed(where: str) -> None:
        offers.put_nowait(where)
        await freed.wait()

    cast(Any, origin).answer = until_freed
    for job in range(3 * _EACH):
        origin.submit("for-0", f"one-{job}")
    async with offering(origin), asyncio.timeout(_WITHIN):
        for _ in range(places._AT_ONE_MEMBER):
            await offers.get()  # as many as one member is offered at once; the others wait
        freed.set()
        assert len({await origin.handed.get() for _ in range(3 * _EACH)}) == 3 * _EACH
