"""Is what people send at once bounded, and is there always as much left for the next as one has?"""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hansa.entrypoints.http.in_flight import FREE, Claim, InFlight, ManagerCrowded, TooMuchAtOnce
from hansa.kernel.errors import Temporary

MOST = 100 * FREE


def filled(bodies: InFlight, sender: str, piece: int = FREE // 4) -> Claim:
    """Somebody who sends as much as they can."""
    claim = Claim(bodies)
    claim.begin(sender, 0)
    with suppress(Temporary):
        while True:
            claim.more(piece)
    return claim


def test_one_gets_half_and_two_a_third_and_the_next_finds_as_much() -> None:
    bodies = InFlight(MOST)
    filled(bodies, "mallory")
    assert MOST * 0.45 < bodies.held_by("mallory") <= MOST / 2
    bodies = InFlight(MOST)
    claims = [Claim(bodies) for _ in range(2)]
    for number, claim in enumerate(claims):
        claim.begin(f"mallory {number}", 0)
    full: set[int] = set()
    while len(full) < len(claims):
        for number, claim in enumerate(claims):
            try:
                claim.more(FREE // 4)
            except Temporary:
                full.add(number)
    assert bodies.size <= MOST * 2 / 3
    alice = Claim(bodies)
    alice.begin("alice", MOST // 7)
    alice.more(MOST // 7)


def test_short_bodies_always_have_room() -> None:
    bodies = InFlight(0)
    for _ in range(1000):
        claim = Claim(bodies)
        claim.begin("anybody", FREE)
        claim.more(FREE)
    assert bodies.size == 0


def test_a_large_one_is_refused_before_it_is_sent() -> None:
    bodies = InFlight(MOST)
    with pytest.raises(ManagerCrowded):
        Claim(bodies).begin("mallory", MOST)
    held = filled(bodies, "mallory")
    with pytest.raises(TooMuchAtOnce, match="left for others") as refused:
        Claim(bodies).begin("mallory", 2 * FREE)
    assert refused.value.retry_after >= 1
    held.close()
    Claim(bodies).begin("mallory", 2 * FREE)


def test_the_largest_body_always_fits_alone() -> None:
    claim = Claim(InFlight(2**20, largest=2**30))
    claim.begin("alice", 2**30)
    claim.more(2**30)


@given(some.lists(some.tuples(some.sampled_from("abc"), some.integers(0, 4 * FREE), some.booleans())))
def test_nothing_is_counted_for_ever(steps: list[tuple[str, int, bool]]) -> None:
    bodies = InFlight(8 * FREE)
    claims: list[Claim] = []
    for sender, size, ends in steps:
        claim = Claim(bodies)
        claims.append(claim)
        claim.begin(sender, 0)
        with suppress(Temporary):
            claim.more(size)
            claim.more(size)
        if ends:
            claims.pop(0).close()
        assert 0 <= bodies.size <= bodies.most
    for claim in claims:
        claim.close()
        claim.close()
    assert bodies.size == 0
    assert not any(bodies.held_by(sender) for sender in "abc")
