"""A member answers a hand-over with something that nobody foresaw: it may have the job, so it is asked."""

import asyncio
import ssl
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from hansa.services import Address, AwayJob, Credentials, Job, Service, Status, replicas
from hansa.services.delegation import Delegation, Ranking
from hansa.services.delegation.handover import Delegator

ONE = Job("one", "gray", "alice", Status.PENDING, 0.0, 100, 1, b"event")
MEMBERS = [{"type": "oscar", "cluster_id": name, "service_name": "gray"} for name in ("visby", "riga")]
GRAY = msgspec.convert(
    {"name": "gray", "owner": "alice", "federation": {"topology": "star", "members": MEMBERS}}, Service
)
BAD = ssl.SSLError("bad record")


class Origin:
    """visby `says` this, question by question; riga takes every job."""

    def __init__(
        self, *says: AwayJob | Exception | None, handing: Exception = BAD, way: Exception | None = None
    ) -> None:
        self.did: list[str] = []
        self._says = list(says)
        self._handing, self._way = handing, way

        async def claim(fresh: Delegation) -> bool:
            self.did.append(f"claim {fresh.epoch} for {fresh.cluster_id}")
            return True

        async def accepted(_job: str, epoch: int, _now: float) -> bool:
            self.did.append(f"accepted {epoch}")
            return True

        async def nothing(*_: Any) -> None: ...

        self.room: Any = SimpleNamespace(
            cluster_id="lubeck",
            clock=SimpleNamespace(now=lambda: 1000.0),
            receipts=SimpleNamespace(get=lambda _: None),
            delegations=SimpleNamespace(claim=claim, accepted=accepted),
            away_keys=SimpleNamespace(end=nothing),
            key_holders=SimpleNamespace(add=nothing),
            dispatcher=SimpleNamespace(gone=lambda _: None),
            prober=SimpleNamespace(failed=lambda *_: None),
            peers=SimpleNamespace(find=self._peer),
        )

    def _peer(self, cluster: str, *_: Any) -> Any:
        async def hand_over(*_: Any) -> None:
            if cluster == "visby":
                raise self._handing

        async def away_job(*_: Any) -> AwayJob | None:
            said = self._says.pop(0)
            if isinstance(said, Exception):
                raise said
            return said

        async def capabilities() -> frozenset[str]:
            if cluster == "visby" and self._way is not None:
                raise self._way
            return replicas.showing.NEEDED

        address = Address(cluster, f"https://{cluster}", kind="hansa")
        return SimpleNamespace(address=address, hand_over=hand_over, away_job=away_job, capabilities=capabilities)

    async def offer(self) -> bool:
        assert GRAY.federation is not None
        delegator = Delegator(self.room, threshold=1.0, patience=60.0, hop_limit=3, formula="")
        record: Any = SimpleNamespace(service=GRAY)
        async with asyncio.timeout(20):
            return await delegator._offer_in_order(record, ONE, Ranking(tuple(GRAY.federation.members)), None, "")


@pytest.fixture(autouse=True)
def everybody_lets_us_in(monkeypatch: pytest.MonkeyPatch) -> None:
    async def for_jobs(*_: Any) -> list[Credentials]:
        return [Credentials("Bearer token")]

    monkeypatch.setattr(replicas, "for_jobs", for_jobs)


async def test_one_that_has_the_job_keeps_it() -> None:
    origin = Origin(BAD, AwayJob("Pending"))
    assert await origin.offer()
    assert origin.did == ["claim 1 for visby", "accepted 1"]


async def test_one_that_does_not_have_it_is_passed_over() -> None:
    origin = Origin(None)
    assert await origin.offer()
    assert origin.did == ["claim 1 for visby", "claim 2 for riga", "accepted 2"]


async def test_nor_does_one_get_it_that_cannot_even_be_asked_what_it_is() -> None:
    origin = Origin(way=BAD)
    assert await origin.offer()
    assert origin.did == ["claim 1 for riga", "accepted 1"]
