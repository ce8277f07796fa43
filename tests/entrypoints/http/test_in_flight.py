"""Is what people send at once bounded, and is there always as much left for the next as one has?"""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hansa.entrypoints.http.in_flight import FREE, MOST_FREE, Claim, InFlight, ManagerCrowded, TooMuchAtOnce
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


def short(bodies: InFlight, sender: str) -> Claim:
    claim = Claim(bodies)
    claim.begin(sender, FREE)
    claim.more(FREE)
    return claim


def test_short_bodies_always_have_room() -> None:
    bodies = InFlight(0)
    for _ in range(1000):
        short(bodies, "anybody").close()
    for number in range(1000):
        short(bodies, f"one of many {number}")
    assert bodies.size == 0


def test_many_short_bodies_of_one_sender_count() -> None:
    bodies = InFlight(MOST)
    held = [short(bodies, "mallory") for _ in range(MOST_FREE)]
    assert bodies.size == 0
    held += [short(bodies, "mallory") for _ in range(MOST // 2 // FREE)]
    assert bodies.held_by("mallory") == MOST / 2
    with pytest.raises(TooMuchAtOnce):
        short(bodies, "mallory")
    short(bodies, "alice").close()
    for one in held:
        one.close()
    assert bodies.size == 0
    assert short(bodies, "mallory")
    assert bodies.size == 0


def answer(bodies: InFlight, sender: str, size: int) -> Claim:
    claim = Claim(bodies)
    claim.answer(sender, size)
    return claim


def test_answers_count_like_bodies() -> None:
    bodies = InFlight(MOST)
    answer(bodies, "mallory", MOST // 3)
    with pytest.raises(TooMuchAtOnce, match="left for others"):
        answer(bodies, "mallory", MOST // 3)
    with pytest.raises(TooMuchAtOnce):
        Claim(bodies).begin("mallory", MOST // 3)
    assert answer(bodies, "mallory", FREE)
    assert bodies.held_by("mallory") == MOST // 3
    answer(bodies, "alice", MOST // 3)


def test_one_answer_is_given_to_whoever_has_nothing_else_however_large() -> None:
    bodies = InFlight(MOST)
    given = answer(bodies, "alice", 2 * MOST)
    with pytest.raises(ManagerCrowded):
        answer(bodies, "bob", 2 * FREE)
    given.close()
    answer(bodies, "bob", 2 * FREE)


def making(bodies: InFlight, sender: str, size: int) -> Claim:
    """Somebody whose answer is being made, piece by piece."""
    claim = Claim(bodies)
    claim.begin(sender, 0)
    try:
        for _ in range(0, size, FREE // 2):
            claim.hold(FREE // 2)
    except Temporary:
        claim.close()
        raise
    return claim


def test_an_answer_counts_while_it_is_made() -> None:
    bodies = InFlight(MOST)
    made = making(bodies, "mallory", MOST // 3)
    with pytest.raises(TooMuchAtOnce):
        making(bodies, "mallory", MOST // 3)
    making(bodies, "alice", MOST // 5)
    made.answer("mallory", MOST // 3)  # it does not count twice
    made.close()
    assert bodies.held_by("mallory") <= MOST / 2


def test_one_that_is_made_for_whoever_has_nothing_else_has_room_and_so_has_a_short_one_for_anybody() -> None:
    bodies = InFlight(MOST)
    made = making(bodies, "alice", 2 * MOST)
    with pytest.raises(ManagerCrowded):
        making(bodies, "bob", 2 * FREE)
    making(bodies, "bob", FREE)
    made.close()
    making(bodies, "bob", 2 * FREE)


def test_of_a_request_that_is_answered_only_the_answer_counts() -> None:
    bodies = InFlight(MOST)
    claim = Claim(bodies)
    claim.begin("alice", 0)
    claim.more(10 * FREE)
    claim.answer("alice", 3 * FREE)
    assert bodies.size == bodies.held_by("alice") == 3 * FREE
    claim.close()
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
            claim.answer(sender, size)
        if ends:
            claims.pop(0).close()
        assert 0 <= bodies.size < bodies.most + 4 * FREE  # one answer may be on top
    for claim in claims:
        claim.close()
        claim.close()
    assert bodies.size == 0
    assert not any(bodies.held_by(sender) for sender in "abc")
