"""What is being read of all peers at once: bounded together, and nobody's share is larger than what it leaves."""

import pytest

from hansa.drivers.oscar.under_way import FREE, TooMuch, UnderWay


def test_one_peer_gets_half() -> None:
    under_way = UnderWay(100)
    with under_way.answer("visby") as one, under_way.answer("visby") as other:
        one.grow(FREE + 30)
        other.grow(FREE + 20)
        with pytest.raises(TooMuch):
            other.grow(FREE + 21)
        with under_way.answer("riga") as theirs:
            theirs.grow(FREE + 25)
            with pytest.raises(TooMuch):
                theirs.grow(FREE + 26)
        assert under_way.size == 50
    assert under_way.size == 0


def test_short_answers_always_have_room() -> None:
    under_way = UnderWay(0)
    with under_way.answer("visby") as short:
        short.grow(FREE)
        with pytest.raises(TooMuch):
            short.grow(FREE + 1)
    assert under_way.size == 0


def test_what_was_refused_is_given_back() -> None:
    under_way = UnderWay(100)
    with under_way.answer("visby") as one:
        one.grow(FREE + 40)
        with pytest.raises(TooMuch):
            one.grow(FREE + 60)
    assert under_way.size == 0
