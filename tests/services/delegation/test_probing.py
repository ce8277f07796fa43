"""Is what we know of members fresh enough, and does one that hangs or fails hold nobody up?"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from hansa.kernel.errors import Conflict
from hansa.services import NodeRoom, PeerHistory, PeerStatus, PeerUnreachable
from hansa.services.delegation import Prober
from hansa.services.delegation.probing import Seen

TTL = 5.0
TIMEOUT = 60.0  # of real time: a test that waits for it fails


@dataclass(slots=True)
class Clock:
    """Moved by hand."""

    at: float = 1000.0

    def now(self) -> float:
        return self.at


def status(cpu: int = 1000) -> PeerStatus:
    return PeerStatus(0.01, (NodeRoom(cpu, 1 << 30),), 1, cpu, 1 << 30, cpu, 4000, 4 << 30)


@dataclass(slots=True)
class Member:
    """What one member answers, and how often it was asked."""

    key: str
    cpu: int = 1000
    fails: bool = False
    asked: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.gate.set()

    async def probe(self, timeout: float) -> tuple[PeerStatus, PeerHistory | None]:
        self.asked += 1
        await self.gate.wait()
        if self.fails:
            raise PeerUnreachable(f"{self.key} does not answer")
        return status(self.cpu), None

    def hang(self) -> None:
        self.gate.clear()


@dataclass(slots=True)
class Setting:
    prober: Prober
    clock: Clock

    async def look(self, *members: Member, wait_for: str = "most") -> dict[str, Seen]:
        return await self.prober.look([(one.key, one.probe) for one in members], wait_for)  # type: ignore[arg-type]

    async def settle(self, *members: Member, wait_for: str = "all") -> Seen:
        """Looks once, with whatever is asked now answered."""
        return (await self.look(*members, wait_for=wait_for))[members[0].key]


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    clock = Clock()
    made = Setting(Prober(clock, ttl=TTL, timeout=TIMEOUT), clock)
    yield made
    await made.prober.close()


def free(seen: Seen) -> int | None:
    return seen.status.free_cpu if seen.status else None


async def test_the_first_look_waits_and_later_ones_remember(setting: Setting) -> None:
    visby = Member("visby", cpu=700)
    seen = (await setting.look(visby))["visby"]
    assert (free(seen), seen.trouble, seen.at) == (700, "", 1000.0)
    visby.cpu = 100
    setting.clock.at += TTL - 0.1
    assert free((await setting.look(visby))["visby"]) == 700
    assert visby.asked == 1


async def test_older_figures_are_used_while_fresh_ones_are_fetched(setting: Setting) -> None:
    visby = Member("visby", cpu=700)
    await setting.look(visby)
    visby.cpu = 100
    setting.clock.at += TTL
    seen = (await setting.look(visby))["visby"]
    assert (free(seen), seen.awaited) == (700, True)
    assert free(await setting.settle(visby)) == 100
    assert visby.asked == 2


async def test_figures_that_are_far_too_old_are_waited_for(setting: Setting) -> None:
    visby = Member("visby", cpu=700)
    await setting.look(visby)
    visby.cpu = 100
    setting.clock.at += 100 * TTL
    assert free((await setting.look(visby))["visby"]) == 100


async def test_nobody_is_waited_for_if_figures_do_not_matter(setting: Setting) -> None:
    visby = Member("visby")
    seen = (await setting.look(visby, wait_for="nobody"))["visby"]
    assert (seen.status, seen.awaited, seen.resting) == (None, True, False)
    assert seen.trouble


async def test_one_member_is_asked_once_at_a_time(setting: Setting) -> None:
    visby = Member("visby")
    visby.hang()
    looks = [asyncio.create_task(setting.look(visby)) for _ in range(5)]
    await asyncio.sleep(0.01)
    assert visby.asked == 1
    visby.gate.set()
    for look in looks:
        assert free((await look)["visby"]) == 1000
    assert visby.asked == 1


async def test_two_services_of_one_cluster_are_one_question(setting: Setting) -> None:
    visby = Member("visby")
    assert list(await setting.look(visby, visby)) == ["visby"]
    assert visby.asked == 1


async def test_a_hung_member_delays_no_decision_about_those_that_are_known(setting: Setting) -> None:
    visby, riga = Member("visby"), Member("riga")
    await setting.look(visby, riga)
    riga.hang()
    setting.clock.at += TTL
    await setting.settle(visby, wait_for="all")
    began = time.perf_counter()
    for _ in range(20):
        seen = await setting.look(visby, riga)
        await asyncio.sleep(0)
    assert time.perf_counter() - began < 1
    assert (free(seen["visby"]), free(seen["riga"])) == (1000, 1000)  # riga by what it said last
    assert riga.asked == 2


async def test_a_hung_member_of_many_that_are_unknown_is_waited_for_only_briefly(setting: Setting) -> None:
    members = [Member(f"m{number}") for number in range(16)]
    members[3].hang()
    began = time.perf_counter()
    seen = await setting.look(*members)
    assert time.perf_counter() - began < 1
    assert [key for key, one in seen.items() if one.status is None] == ["m3"]
    assert seen["m3"].awaited
    members[3].gate.set()
    assert free((await setting.look(*members, wait_for="all"))["m3"]) == 1000


async def test_one_unknown_among_known_ones_is_not_waited_for(setting: Setting) -> None:
    visby, riga = Member("visby"), Member("riga")
    await setting.look(visby)
    riga.hang()
    began = time.perf_counter()
    for _ in range(20):
        seen = await setting.look(visby, riga)
        await asyncio.sleep(0)
    assert time.perf_counter() - began < 1
    assert (free(seen["visby"]), seen["riga"].status, riga.asked) == (1000, None, 1)


async def test_the_only_unknown_one_is_waited_for_but_not_beyond_the_limit() -> None:
    clock = Clock()
    prober = Prober(clock, ttl=TTL, timeout=0.05)
    visby = Member("visby")
    visby.hang()
    try:
        seen = (await prober.look([("visby", visby.probe)]))["visby"]
        assert seen.status is None
        await prober.look([("visby", visby.probe)], "all")
        assert "no answer within 0.05 s" in (await prober.look([("visby", visby.probe)]))["visby"].trouble
    finally:
        await prober.close()


async def test_three_failures_in_a_row_give_it_a_rest(setting: Setting) -> None:
    visby = Member("visby", fails=True)
    for number in range(1, 4):
        seen = await setting.settle(visby)
        assert visby.asked == number
        assert seen.resting == (number == 3)
    assert "3 times in a row" in seen.trouble
    assert "does not answer" in seen.trouble
    setting.clock.at += 9.9
    assert (await setting.settle(visby)).resting
    assert visby.asked == 3
    setting.clock.at += 0.2
    await setting.settle(visby)
    assert visby.asked == 4


async def test_an_answer_in_between_starts_the_count_anew(setting: Setting) -> None:
    visby = Member("visby", fails=True)
    await setting.settle(visby)
    await setting.settle(visby)
    visby.fails = False
    await setting.settle(visby)
    visby.fails = True
    for _ in range(2):
        setting.clock.at += TTL
        assert not (await setting.settle(visby)).resting
    assert free((await setting.look(visby))["visby"]) == 1000  # what it said last is not too old


async def test_each_rest_is_longer_up_to_a_limit(setting: Setting) -> None:
    visby = Member("visby", fails=True)
    for _ in range(3):
        await setting.settle(visby)
    rests = []
    for _ in range(2000):  # days of it
        began, asked = setting.clock.at, visby.asked
        while visby.asked == asked:
            setting.clock.at += 10
            await setting.settle(visby)
        rests.append(setting.clock.at - began)
        if len(rests) > 8 and visby.asked > 40:
            break
    assert rests[:6] == [10, 20, 40, 60, 60, 60]
    assert set(rests[6:]) == {60}


async def test_many_that_fail_at_once_are_one_reason_to_rest(setting: Setting) -> None:
    for _ in range(3000):
        setting.prober.failed("visby", "gone")
    visby = Member("visby")
    assert (await setting.look(visby))["visby"].resting
    setting.clock.at += 10
    assert not (await setting.settle(visby)).resting
    assert visby.asked > 0


async def test_one_that_comes_back_must_answer_twice(setting: Setting) -> None:
    visby = Member("visby", fails=True)
    for _ in range(3):
        await setting.settle(visby)
    visby.fails = False
    setting.clock.at += 11
    seen = await setting.settle(visby)
    assert (seen.status, seen.trouble) == (None, "it has just come back")
    setting.clock.at += TTL
    seen = await setting.settle(visby)
    assert (free(seen), seen.trouble) == (1000, "")
    visby.fails = True  # well again: one failure is no reason for a rest
    setting.clock.at += TTL
    assert not (await setting.settle(visby)).resting


async def test_one_that_fails_while_it_comes_back_rests_again_at_once(setting: Setting) -> None:
    visby = Member("visby", fails=True)
    for _ in range(3):
        await setting.settle(visby)
    visby.fails = False
    setting.clock.at += 11
    await setting.settle(visby)
    visby.fails = True
    setting.clock.at += TTL
    assert (await setting.settle(visby)).resting


async def test_what_others_could_not_reach_counts_too(setting: Setting) -> None:
    visby = Member("visby")
    await setting.look(visby)
    for _ in range(3):
        setting.prober.failed("visby", "the hand-over was cut")
    seen = (await setting.look(visby))["visby"]
    assert seen.resting
    assert "the hand-over was cut" in seen.trouble
    assert visby.asked == 1


async def test_a_refusal_or_a_defect_is_a_failure_and_nothing_worse(setting: Setting) -> None:
    async def refuses(timeout: float) -> tuple[PeerStatus, PeerHistory | None]:
        raise Conflict("not you")

    async def lies(timeout: float) -> tuple[PeerStatus, PeerHistory | None]:
        raise ZeroDivisionError

    seen = await setting.prober.look([("a", refuses), ("b", lies)], "all")
    assert (seen["a"].trouble, seen["b"].trouble) == ("not you", "ZeroDivisionError")


async def test_closing_ends_what_is_under_way(setting: Setting) -> None:
    visby = Member("visby")
    visby.hang()
    await setting.look(visby, wait_for="nobody")
    await asyncio.sleep(0)
    await setting.prober.close()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "probe visby"]


async def test_what_nobody_asks_about_any_more_is_forgotten(setting: Setting) -> None:
    await setting.settle(Member("gone/service"))
    setting.clock.at += 601.0
    await setting.settle(Member("new/service"))
    assert set(setting.prober._known) == {"new/service"}
