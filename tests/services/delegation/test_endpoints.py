"""An endpoint takes a job and tells no more of it. Does nobody else have the job then, nor keys for it?"""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from hansa.services import Address, Credentials, Job, PeerRefused, Service, Status, replicas
from hansa.services.delegation import Delegation, Ranking
from hansa.services.delegation.handover import Delegator

ONE = Job("one", "gray", "alice", Status.PENDING, 0.0, 100, 1, b"event")
MEMBERS = [
    {"type": "oscar", "cluster_id": "visby", "service_name": "gray-v"},
    {"type": "endpoint", "url": "https://hook.example.org/"},
]
GRAY = msgspec.convert(
    {"name": "gray", "owner": "alice", "federation": {"topology": "star", "members": MEMBERS}}, Service
)


class Origin:
    """visby says no; it may have the job nevertheless, and publish what it made."""

    def __init__(self, *, publishes: bool) -> None:
        self.did: list[str] = []

        async def claim(fresh: Delegation) -> bool:
            self.did.append(f"claim {fresh.epoch}")
            return True

        async def take_back(_job: str, epoch: int, _said: Any) -> bool:
            self.did.append(f"take back {epoch}")
            return not publishes

        async def end_keys(name: str) -> None:
            self.did.append(f"end {name}")

        async def post(url: str, *_: Any, **__: Any) -> None:
            self.did.append(f"post {url}")

        async def end(*_: Any) -> bool:
            return True

        async def hand_over(*_: Any) -> None:
            raise PeerRefused("no", status=403)

        async def capabilities() -> frozenset[str]:
            return replicas.showing.NEEDED

        async def nothing(*_: Any) -> None:
            return None

        visby = Address("visby", "https://visby", kind="hansa")
        peer = SimpleNamespace(address=visby, hand_over=hand_over, capabilities=capabilities)
        self.room: Any = SimpleNamespace(
            cluster_id="lubeck",
            clock=SimpleNamespace(now=lambda: 1000.0),
            receipts=SimpleNamespace(get=lambda _: None),
            jobs=SimpleNamespace(end=end),
            delegations=SimpleNamespace(claim=claim, take_back=take_back),
            away_keys=SimpleNamespace(end=end_keys),
            key_holders=SimpleNamespace(add=nothing),
            dispatcher=SimpleNamespace(gone=lambda _: None),
            peers=SimpleNamespace(find=lambda *_: peer, post_event=post),
        )

    async def offer(self) -> bool:
        assert GRAY.federation is not None
        delegator = Delegator(self.room, threshold=1.0, patience=1.0, hop_limit=3, formula="")
        record: Any = SimpleNamespace(service=GRAY)
        return await delegator._offer_in_order(record, ONE, Ranking(tuple(GRAY.federation.members)), None, "")


@pytest.fixture(autouse=True)
def visby_lets_us_in(monkeypatch: pytest.MonkeyPatch) -> None:
    async def for_jobs(*_: Any) -> list[Credentials]:
        return [Credentials("Bearer token")]

    monkeypatch.setattr(replicas, "for_jobs", for_jobs)


async def test_whoever_was_asked_before_has_lost_it_by_then() -> None:
    origin = Origin(publishes=False)
    assert await origin.offer()
    assert origin.did == ["claim 1", "take back 1", "end away one 1", "post https://hook.example.org/"]


async def test_what_is_being_published_goes_to_no_endpoint() -> None:
    origin = Origin(publishes=True)
    assert await origin.offer()
    assert origin.did == ["claim 1", "take back 1"]
