"""Which keys does a cluster get for a job that it runs for others, and do they end when the job is its own no more?"""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hansa.kernel.errors import Forbidden, NotFound
from hansa.services import Job, Room, Service, Status, orders
from hansa.services.delegation import NOBODY, Delegation, Receipt, lending, receiving
from hansa.services.delegation.handover import Delegator
from hansa.services.delegation.spilling import Spilled

PERMIT, LATER = "ab" * 32, "cd" * 32
HERS = {"endpoint": "https://store", "access_key": "alice", "secret_key": "hers for good"}
ONE = Job("one", "gray", "alice", Status.PENDING, 0.0, 100, 1024, b"")


def given(epoch: int, permit: str, phase: Any = "away", **decision: Any) -> Delegation:
    return Delegation("one", epoch, phase, "riga", "gray-r", "https://riga", permit, NOBODY, decision, 0.0)


class Origin:
    """It lends keys; meanwhile the job may go elsewhere."""

    def __init__(self, now: Delegation | None) -> None:
        self.lent, self.ended = list[str](), list[str]()

        async def lend(name: str, _order: object) -> dict[str, str]:
            self.lent.append(name)
            return {"access_key": "of this job"}

        async def end(name: str) -> None:
            self.ended.append(name)

        async def get(_job: str) -> Delegation | None:
            return now

        self.room = cast(
            Room,
            SimpleNamespace(away_keys=SimpleNamespace(lend=lend, end=end), delegations=SimpleNamespace(get=get)),
        )


@pytest.fixture(autouse=True)
def every_order_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "make", lambda *_, **__: None)


async def test_whoever_has_the_job_has_its_keys() -> None:
    origin = Origin(given(1, PERMIT))
    store = await lending.lend_while(origin.room, given(1, PERMIT), cast(Any, None), b"", "alice")
    assert (store, origin.ended) == ({"access_key": "of this job"}, [])


@pytest.mark.parametrize(
    "now", [None, given(2, LATER), given(2, "", "back"), given(1, "", "done")], ids=["gone", "next", "back", "done"]
)
async def test_keys_that_were_asked_for_just_before_it_went_elsewhere_have_ended(now: Delegation | None) -> None:
    """They came after those of that member had been ended, and nobody would have ended them."""
    origin = Origin(now)
    with pytest.raises(NotFound):
        await lending.lend_while(origin.room, given(1, PERMIT), cast(Any, None), b"", "alice")
    assert (origin.lent, origin.ended) == (["away one 1"], ["away one 1"])


@pytest.mark.parametrize("over", [False, True])
async def test_nor_does_a_run_leave_keys_that_were_asked_for_just_before_it_was_over(over: bool) -> None:
    origin = Origin(None)
    room: Any = origin.room
    room.spilled = {"run-1": Spilled("gray", "alice", b"", "spilled run-1 0", PERMIT)}
    room.records = SimpleNamespace(get=lambda _: object())
    lend = room.away_keys.lend

    async def lend_late(name: str, order: object) -> Any:
        if over:
            room.spilled.clear()
        return await lend(name, order)

    room.away_keys.lend = lend_late
    if over:
        with pytest.raises(NotFound):
            await receiving.storage(room, "run-1", PERMIT)
    else:
        await receiving.storage(room, "run-1", PERMIT)
    assert (origin.lent, origin.ended) == (["spilled run-1 0"], ["spilled run-1 0"] if over else [])


def submitted_here(permit: str = "") -> Any:
    """A job that was submitted to this replica: with its caller's own store keys, or with keys that were lent."""
    receipt = Receipt("one", "gray", "visby", "https://visby", (), permit, HERS, 0.0)

    async def delegation(_job: str) -> Delegation:
        return given(1, PERMIT)

    async def nothing(_name: str) -> list[Delegation]:
        return []

    async def job(_name: str) -> Job:
        return ONE

    return SimpleNamespace(
        cluster_id="visby",
        spilled={},
        receipts=SimpleNamespace(get=lambda _: receipt),
        delegations=SimpleNamespace(get=delegation, named=nothing),
        jobs=SimpleNamespace(get=job),
        records=SimpleNamespace(get=lambda _: SimpleNamespace(service=Service(name="gray"))),
    )


async def test_store_keys_of_a_person_go_to_no_other_cluster() -> None:
    with pytest.raises(Forbidden):
        await receiving.storage(submitted_here(), "one", PERMIT)


@pytest.mark.parametrize(("permit", "stays"), [("", True), (PERMIT, False)])
def test_so_such_a_job_is_not_offered_to_any(permit: str, stays: bool) -> None:
    delegator = Delegator(submitted_here(permit), threshold=1.0, patience=1.0, hop_limit=3, formula="")
    why = delegator._passed(ONE, cast(Any, SimpleNamespace(cluster_id="riga")))
    assert ("submit it at the coordinator" in why) is stays
