"""Two programs with one key are told apart, and one that is restarted or overtaken on its way is not taken for two."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from hansa.federation.senders import Senders


def heard(*beats: tuple[str, int], every: float = 1.0) -> bool:
    found = Senders()
    for turn, (run, number) in enumerate(beats):
        found.heard(run, number, turn * every)
    return found.several((len(beats) - 1) * every)


def test_two_that_take_turns() -> None:
    assert heard(("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3))
    assert heard(("a", 1), ("b", 2**62), ("a", 2), ("a", 3), ("b", 1), ("a", 4))
    assert heard(("", 5), ("x", 1), ("", 6), ("x", 2), ("", 7))
    assert heard(("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3), every=600)  # one of them seldom


def test_two_without_a_mark_are_told_apart_by_their_numbers() -> None:
    for other in (2**62, 1):
        assert heard(*chain.from_iterable((("", 100 + turn), ("", other + turn)) for turn in range(6)))


def test_a_machine_that_was_copied_with_all_it_remembers() -> None:
    assert heard(*chain.from_iterable((("a", turn), ("a", turn)) for turn in range(5)))


def test_some_heartbeats_that_were_overtaken_are_not_enough() -> None:
    assert not heard(("a", 1), ("a", 3), ("a", 2), ("a", 4), ("a", 6), ("a", 5), ("a", 7))
    assert not heard(("a", 1), ("b", 2), ("a", 1), ("b", 3))


def test_what_was_long_ago_does_not_count() -> None:
    found = Senders()
    for at, run in enumerate("ababa"):
        found.heard(run, 1, float(at))
    assert found.several(5.0)
    assert not found.several(4000.0)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_a_manager_that_is_restarted_again_and_again_is_one(lengths: list[int]) -> None:
    numbers = iter(range(1, 1000))
    beats = [(f"run {run}", next(numbers)) for run, length in enumerate(lengths) for _ in range(length)]
    assert not heard(*beats)


def test_what_was_overtaken_is_late_only_for_its_own_sender() -> None:
    found = Senders()
    found.heard("a", 9, 1.0)
    assert found.is_late("a", 8)
    assert not found.is_late("b", 1)
    found.heard("", 2**62, 2.0)
    assert not found.is_late("", 8)  # whoever sent the other may not be the same
