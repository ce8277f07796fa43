"""Is the line in front of the ledger fair, and does nobody wait for ever?"""

import asyncio

from hansa.resources.admission import Admission
from hansa.resources.capacity import NO_LIMIT, Ledger, Needs
from hansa.resources.shares import NO_SHARE, Share, Shares


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
    assert admission.ledger.free == Needs(1000, 10**9, NO_LIMIT)


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


class TestShares:
    """What one owner may hold together."""

    @staticmethod
    def admission() -> Admission:
        return Admission(
            Ledger(10_000, 10**9, disk=lambda: 1000),
            shares=Shares(lambda owner: NO_SHARE if owner == "admin" else Share(500, 1000, 100)),
        )

    def test_one_beyond_a_share_waits_and_holds_nobody_up(self) -> None:
        admission = self.admission()
        assert admission.try_hold("a1", Needs(1, 1, 80, "alice"))
        assert not admission.try_hold("a2", Needs(1, 1, 80, "alice"))
        assert "20 are left" in admission.over_share(Needs(1, 1, 80, "alice"))
        assert admission.try_hold("b1", Needs(1, 1, 80, "bob"))
        admission.release("a1")
        assert admission.try_hold("a2", Needs(1, 1, 80, "alice"))

    def test_a_first_one_always_may_and_an_admin_has_no_share(self) -> None:
        admission = self.admission()
        assert admission.try_hold("large", Needs(1, 1, 300, "alice"))
        for number in range(6):
            assert admission.try_hold(f"admin-{number}", Needs(1, 1, 100, "admin"))

    async def test_who_waits_in_line_is_called_when_the_share_allows(self) -> None:
        admission = self.admission()
        assert admission.try_hold("a1", Needs(1, 1, 80, "alice"), lasting=True)
        waiting = asyncio.create_task(admission.wait_for("a2", Needs(1, 1, 80, "alice"), 10))
        await asyncio.sleep(0)
        assert await admission.wait_for("b1", Needs(1, 1, 80, "bob"), 1)
        assert not waiting.done()
        admission.release("a1")
        assert await waiting

    async def test_all_kinds_of_comers_are_held_to_one_share(self) -> None:
        admission, needs = self.admission(), Needs(200, 100, 0, "alice")
        assert admission.try_hold("instance", needs, lasting=True)
        assert await admission.wait_for("call", needs, 1)
        assert not admission.try_hold("job", needs)
        assert not await admission.wait_for("another call", needs, 0.01)
        assert not admission.try_hold("in kubernetes", needs, room=False)
        assert admission.shares.of("alice") == Needs(400, 200, 0, "alice")
        admission.release("call")
        assert admission.try_hold("job", needs)

    async def test_a_first_one_beyond_the_whole_share_never_begins(self) -> None:
        admission, large = self.admission(), Needs(600, 1, 0, "alice")
        assert not admission.try_hold("job", large)
        assert not await admission.wait_for("call", large, 0.01)
        assert admission.over_share(large) == "it needs 600m cpu, your quota is 500m"

    async def test_a_share_alone_takes_no_room(self) -> None:
        admission = self.admission()
        assert admission.try_hold("full", Needs(10_000, 0, 0, "admin"))
        assert admission.try_hold("worker", Needs(400, 1, 0, "alice"), room=False)
        waiting = asyncio.create_task(admission.wait_for("next", Needs(400, 1, 0, "alice"), 10, room=False))
        await turn()
        assert not waiting.done()
        admission.release("worker")
        assert await waiting
        assert admission.ledger.promised.cpu == 10_000

    async def test_what_is_handed_over_counts_for_another(self) -> None:
        admission, needs = self.admission(), Needs(400, 1, 0, "alice")
        assert admission.try_hold("worker", needs, lasting=True)
        assert admission.hand_over("worker", "alice")
        waiting = asyncio.create_task(admission.wait_for("call", needs, 10))
        await turn()
        assert admission.hand_over("worker", "bob")
        assert await waiting
        assert not admission.hand_over("worker", "alice")
        assert admission.shares.of("bob").cpu == 400

    def test_who_can_give_something_back_hears_of_want(self) -> None:
        admission, heard = self.admission(), list[str]()
        admission.on_want(heard.append)
        assert admission.try_hold("a", Needs(400, 1, 0, "alice"))
        assert not admission.try_hold("b", Needs(600, 1, 0, "alice"))  # nothing given back would help
        assert heard == []
        assert not admission.try_hold("c", Needs(400, 1, 0, "alice"))
        assert set(heard) == {"alice"}

    async def test_room_that_others_made_is_found(self) -> None:
        room = [50]
        admission = Admission(Ledger(1000, 10**9, disk=lambda: room[0]))
        waiting = asyncio.create_task(admission.wait_for("one", Needs(1, 1, 80), 10))
        await asyncio.sleep(0)
        room[0] = 100
        admission.look_again()
        assert await waiting
