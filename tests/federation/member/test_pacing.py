"""A hub that is away is asked later and later, never later than two heartbeats, and not by all at once."""

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from hansa.federation.member.beats import Beats, Numbers
from hansa.federation.member.pacing import Pace
from hansa.messages.members import Heard


@given(every=st.floats(0.1, 3600), failures=st.integers(1, 50), seed=st.integers())
def test_the_longest_pause_is_two_heartbeats(every: float, failures: int, seed: int) -> None:
    pace = Pace(every, random.Random(seed))
    pauses = [pace.failed() for _ in range(failures)]
    assert all(0 < pause <= 2 * every for pause in pauses)
    assert pauses[0] <= every / 4
    if failures >= 5:
        assert pauses[-1] >= every
    pace.answered()
    assert pace.failed() <= every / 4


def test_managers_do_not_come_back_in_the_same_moment() -> None:
    paces = [Pace(5.0) for _ in range(100)]
    for _ in range(6):
        pauses = [pace.failed() for pace in paces]
    assert max(pauses) - min(pauses) > 2.0


@given(st.lists(st.tuples(st.floats(0, 2e9), st.integers(1, 5)), min_size=1, max_size=20))
def test_numbers_only_grow_whatever_the_clock_does(lives: list[tuple[float, int]]) -> None:
    reserved, seen = 0, [0]
    for now, count in lives:
        numbers = Numbers(now, reserved)
        for _ in range(count):
            seen.append(numbers.take())
            reserved = numbers.reserved  # written down before the number is used
    assert all(later > earlier for earlier, later in itertools.pairwise(seen))


contents = st.dictionaries(st.sampled_from("abc"), st.sampled_from([b"1", b"2", b"3"]), max_size=3)


@given(st.lists(st.tuples(contents, st.sampled_from(["answered", "answer lost", "lost"]), st.booleans()), max_size=30))
def test_the_hub_knows_all_whenever_it_has_answered(turns: list[tuple[dict[str, bytes], str, bool]]) -> None:
    """Whatever was lost before: heartbeats, or only their answers."""
    beats, hub = Beats(), {"a": b"", "b": b"", "c": b""}
    now = {"a": b"0", "b": b"0", "c": b"0"}
    for number, (changes, fate, asks) in enumerate(turns, 1):
        now = {**now, **changes}
        beat = beats.make(number, 1, now)
        if fate != "lost":
            hub.update({name: bytes(body) for name, body in beat.sections.items()})
        if fate == "answered":
            assert hub == now
            beats.answered(beat, Heard(number=number, desired=0, every=5, whole=asks))
        if asks and fate == "answered":
            assert set(beats.make(number, 1, now).sections) == set(now)


def test_a_hub_that_answers_without_end_is_asked_once_a_second() -> None:
    pace, now, taken = Pace(5.0), 1000.0, 0
    while now < 1100.0:
        now += pace.pause(now)
        taken += 1
    assert 100 <= taken <= 112
    assert [pace.pause(now + 60) for _ in range(10)] == [0.0] * 10, "some may come at once again"
