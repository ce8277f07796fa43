"""Is the line in front of the ledger fair, and does nobody wait for ever?"""

import asyncio

from hansa.resources.admission import Admission
from hansa.resources.capacity import Ledger, Needs


class Watch:
    """A clock that tests move by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def cores(count: float) -> Needs:
    return Needs(int(count * 1000), 0)


def opened(watch: Watch | None = None, cpu: int = 2000) -> Admission:
    return Admission(Ledger(cpu, 10**9), patience=30, now=watch or Watch())


async def turn() -> None:
    """Lets everyone who was called up go on."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_what_fits_is_held_at_once_and_can_be_repeated() -> None:
    admission = opened()
    assert admission.try_hold("a", cores(1))
    assert admission.try_hold("a", cores(1))
    assert await admission.wait_for("b", cores(1), timeout=0)
    assert not admission.try_hold("c", cores(1))
    admission.release("a")
    admission.release("a")
    assert admission.ledger.free == Needs(1000, 10**9)


async def test_waiting_calls_are_served_in_order() -> None:
    admission = opened()
    assert admission.try_hold("all", cores(2))
    served: list[str] = []

    async def call(name: str) -> None:
        assert await admission.wait_for(name, cores(2), timeout=5)
        served.append(name)
        admission.release(name)

    async with asyncio.TaskGroup() as calls:
        for name in ("first", "second", "third"):
            calls.create_task(call(name))
            await turn()
        admission.release("all")
    assert served == ["first", "second", "third"]


async def test_a_call_gives_up_when_its_time_is_over() -> None:
    admission = opened()
    assert admission.try_hold("all", cores(2))
    assert not await admission.wait_for("late", cores(1), timeout=0.01)
    admission.release("all")
    assert admission.ledger.free.cpu == 2000


async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    admission = opened()
    assert admission.try_hold("all", cores(2))
    waiting = asyncio.create_task(admission.wait_for("gone", cores(1), timeout=5))
    await turn()
    admission.release("all")  # called up, and cancelled in the same moment
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert admission.ledger.free.cpu == 2000


async def test_small_ones_overtake_only_until_patience_ends() -> None:
    watch = Watch()
    admission = opened(watch)
    assert admission.try_hold("runs", cores(1))
    big = asyncio.create_task(admission.wait_for("big", cores(2), timeout=5))
    await turn()
    assert admission.try_hold("small", cores(1)), "what is free is used while nobody has waited for long"
    admission.release("small")
    watch.time = 31
    assert not admission.try_hold("next", cores(1)), "now the big one comes first"
    admission.release("runs")
    assert await big


async def test_a_refused_job_keeps_its_place_before_younger_calls() -> None:
    watch = Watch()
    admission = opened(watch)
    assert admission.try_hold("runs", cores(1.5))
    assert not admission.try_hold("job", cores(2))
    watch.time = 31
    call = asyncio.create_task(admission.wait_for("call", cores(0.5), timeout=5))
    await turn()
    assert not call.done()
    admission.release("runs")
    await turn()
    assert not call.done(), "the room is kept for the job"
    assert admission.try_hold("job", cores(2))
    admission.release("job")
    assert await call


async def test_a_withdrawn_job_lets_the_others_go() -> None:
    watch = Watch()
    admission = opened(watch)
    assert admission.try_hold("runs", cores(1.5))
    assert not admission.try_hold("job", cores(2))
    watch.time = 31
    call = asyncio.create_task(admission.wait_for("call", cores(0.5), timeout=5))
    await turn()
    admission.withdraw("job")
    assert await call


async def test_who_waits_for_a_lasting_service_blocks_nobody() -> None:
    watch = Watch()
    admission = opened(watch)
    assert admission.try_hold("website", cores(1), lasting=True)
    assert not admission.try_hold("job", cores(2))
    watch.time = 1000
    assert admission.try_hold("other", cores(1))


async def test_every_release_is_told() -> None:
    admission = opened()
    told: list[int] = []
    admission.on_release(lambda: told.append(admission.ledger.free.cpu))
    admission.try_hold("a", cores(1))
    admission.release("a")
    assert told == [2000]


async def test_a_larger_cluster_calls_up_who_waits_and_a_smaller_one_takes_nothing_away() -> None:
    admission = opened(cpu=1000)
    assert admission.try_hold("a", cores(1))
    waiting = asyncio.create_task(admission.wait_for("b", cores(1), timeout=5))
    await turn()
    admission.resize(2000, 10**9)
    assert await waiting
    admission.resize(500, 10**9)
    assert admission.ledger.promised == cores(2)
    admission.release("a")
    assert not admission.try_hold("c", cores(0.1))
    admission.release("b")
    assert admission.try_hold("c", cores(0.1))
