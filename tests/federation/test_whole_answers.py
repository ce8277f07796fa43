"""Answers about everybody: made once for many who ask, never without what somebody changed."""

from hansa.federation.whole_answers import LARGE, WholeAnswers


class Counting:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> bytes:
        self.count += 1
        return b"%d" % self.count


def test_in_a_large_federation_those_who_ask_at_once_get_the_same() -> None:
    clock = [100.0]
    answers, make = WholeAnswers(lambda: clock[0]), Counting()
    assert [answers.get("all", LARGE, 1, make) for _ in range(3)] == [b"1"] * 3
    clock[0] += 0.6
    assert answers.get("all", LARGE, 1, make) == b"2"


def test_what_somebody_changed_is_seen_at_once() -> None:
    answers, make = WholeAnswers(lambda: 100.0), Counting()
    assert answers.get("all", LARGE, (1, "a"), make) == b"1"
    assert answers.get("all", LARGE, (2, "a"), make) == b"2"
    assert answers.get("other", LARGE, (2, "a"), make) == b"3"


def test_a_small_federation_is_always_told_the_newest() -> None:
    answers, make = WholeAnswers(lambda: 100.0), Counting()
    assert [answers.get("all", LARGE - 1, 1, make) for _ in range(2)] == [b"1", b"2"]
