"""Links are judged with patience, told when it matters, and thousands of them are taken in turn."""

import ssl
from dataclasses import dataclass, field

import pytest

from federation.member.scene import HandClock
from hansa.federation.member.links import Links
from hansa.kernel.errors import Temporary
from hansa.messages.members import LinkSeen, Neighbour


def neighbour(ident: str, **more: str) -> Neighbour:
    given = {"kind": "hansa", "endpoint": f"http://{ident}.test", "state": "ready", **more}
    return Neighbour(id=ident, verify=True, **given)


@dataclass
class Network:
    """How long each takes to answer; None does not."""

    seconds: dict[str, float | None] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def probe(self, one: Neighbour, timeout: float) -> float:
        self.asked.append(one.id)
        found = self.seconds.get(one.id, 0.01)
        if found is None:
            raise Temporary(f"{one.id} did not answer")
        return found


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def links(network: Network, clock: HandClock) -> Links:
    found = Links(network.probe, clock, per_round=10)
    found.know([neighbour("visby")])
    return found


def only(links: Links) -> LinkSeen:
    (found,) = links.told()
    return found


async def test_the_first_answer_is_enough_to_be_up(links: Links) -> None:
    assert links.told() == []
    assert await links.round()
    assert (only(links).up, only(links).latency, only(links).loss) == (True, 0.01, 0.0)


async def test_up_and_down_take_several(links: Links, network: Network, clock: HandClock) -> None:
    await links.round()
    network.seconds["visby"] = None
    clock.time += 15
    assert [await links.round() for _ in range(3)] == [False, False, True]
    down = only(links)
    assert (down.up, down.since, down.reason) == (False, clock.time, "visby did not answer")
    assert down.loss == 0.75
    network.seconds["visby"] = 0.02
    clock.time += 15
    assert [await links.round() for _ in range(2)] == [False, True]
    assert (only(links).up, only(links).since, only(links).reason) == (True, clock.time, "")


async def test_one_that_never_answers_is_down(links: Links, network: Network) -> None:
    network.seconds["visby"] = None
    await links.round()
    assert links.told() == []
    await links.round()
    assert await links.round()
    assert (only(links).up, only(links).latency, only(links).loss) == (False, None, 1.0)


async def test_what_nobody_foresaw_is_no_answer_either(links: Links, network: Network, clock: HandClock) -> None:
    async def probe(one: Neighbour, timeout: float) -> float:
        if one.id == "visby":
            raise ssl.SSLError("bad record")
        return await network.probe(one, timeout)

    links = Links(probe, clock)
    links.know([neighbour("visby"), neighbour("riga")])
    for _ in range(3):
        await links.round()
    assert [(one.target, one.up, one.reason) for one in links.told()] == [
        ("riga", True, ""),
        ("visby", False, "it cannot be asked (SSLError)"),
    ]


async def test_small_changes_are_not_told(links: Links, network: Network) -> None:
    await links.round()
    first = only(links)
    for seconds in (0.011, 0.012, 0.009):
        network.seconds["visby"] = seconds
        await links.round()
        assert only(links) is first
    network.seconds["visby"] = 0.1
    for _ in range(5):
        await links.round()
    assert only(links).latency == 0.1


async def test_the_median_passes_an_outlier_by(links: Links, network: Network) -> None:
    for seconds in (0.01, 5.0, 0.01):
        network.seconds["visby"] = seconds
        await links.round()
    assert only(links).latency == 0.01


async def test_only_the_last_probes_count(links: Links, network: Network) -> None:
    network.seconds["visby"] = None
    for _ in range(5):
        await links.round()
    network.seconds["visby"] = 0.01
    for _ in range(20):
        await links.round()
    assert only(links).loss < 0.1


async def test_who_is_gone_or_moved_is_forgotten(links: Links) -> None:
    await links.round()
    links.know([neighbour("visby", endpoint="http://elsewhere.test")])
    assert links.told() == []
    links.know([neighbour("riga", state="pending"), neighbour("tallinn", endpoint="")])
    assert links.turn() == []


async def test_many_are_taken_in_turn_and_those_we_talk_to_always(links: Links, network: Network) -> None:
    everybody = [f"c{number:03}" for number in range(100)]
    links.know([neighbour(ident) for ident in everybody])
    friends = frozenset({"c007", "c050"})
    for _ in range(13):
        before = len(network.asked)
        await links.round(friends)
        assert len(network.asked) - before == 10
    assert set(network.asked) == set(everybody)
    assert network.asked.count("c007") == network.asked.count("c050") == 13
    assert max(network.asked.count(ident) for ident in everybody if ident not in friends) <= 2


async def test_a_probe_that_fails_oddly_is_a_failure_of_that_one_only(clock: HandClock) -> None:
    async def probe(one: Neighbour, timeout: float) -> float:
        if one.id == "visby":
            raise TimeoutError
        return 0.01

    links = Links(probe, clock)
    links.know([neighbour("visby"), neighbour("riga")])
    for _ in range(3):
        await links.round()
    assert [(one.target, one.up) for one in links.told()] == [("riga", True), ("visby", False)]
