"""Who holds how much, and who may have more?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.resources.capacity import Needs
from hansa.resources.shares import NO_SHARE, Share, Shares, beyond_rest, beyond_share, how_many

MIB = 2**20
SMALL = Share(100, 100 * MIB, 1000)


@pytest.mark.parametrize(
    ("needs", "why"),
    [
        (Needs(100, 100 * MIB), ""),
        (Needs(1500, 1), "it needs 1500m cpu, your quota is 100m"),
        (Needs(1, 2**30), "it needs 1Gi of memory, your quota is 100Mi"),
        (Needs(1, 1, 5000), ""),  # what every run has of the disk, a first one may always have
    ],
)
def test_more_than_the_whole_share(needs: Needs, why: str) -> None:
    assert beyond_share(needs, SMALL) == why
    assert beyond_share(needs, NO_SHARE) == ""


@pytest.mark.parametrize(
    ("needs", "why"),
    [
        (Needs(40, 40 * MIB, 400), ""),
        (Needs(41, 1), "it needs 41m cpu, and of your quota of 100m 40m are left"),
        (Needs(1, 41 * MIB), "it needs 41Mi of memory, and of your quota of 100Mi 40Mi are left"),
        (Needs(1, 1, 401), "it needs 401 of disk, and of the 1000 that all runs of its owner may hold 400 are left"),
    ],
)
def test_more_than_is_left(needs: Needs, why: str) -> None:
    assert beyond_rest(needs, Needs(60, 60 * MIB, 600), SMALL) == why


def test_how_many_fit() -> None:
    assert how_many(Needs(30, 1), Needs(40, 0), SMALL, 9) == 2
    assert how_many(Needs(1, 60 * MIB), Needs(0, 0), SMALL, 9) == 1
    assert how_many(Needs(1, 1, 600), Needs(1, 1, 600), SMALL, 9) == 0
    assert how_many(Needs(30, 1), Needs(40, 0), NO_SHARE, 9) == 9
    assert how_many(Needs(30, 1), Needs(400, 0), SMALL, 9) == 0


def test_a_quota_that_shrank_takes_nothing_away_and_lets_nothing_in() -> None:
    limit = [100]
    shares = Shares(lambda _: Share(limit[0]))
    assert shares.take("a", Needs(80, 1, 0, "alice"))
    limit[0] = 50
    assert shares.take("a", Needs(80, 1, 0, "alice"))  # it is held
    assert not shares.take("b", Needs(1, 1, 0, "alice"))
    shares.give_back("a")
    assert shares.take("b", Needs(1, 1, 0, "alice"))


def test_what_runs_anyway_is_noted_and_keeps_others_out() -> None:
    shares = Shares(lambda _: Share(100))
    shares.note("scaled up", Needs(150, 1, 0, "alice"))
    assert shares.of("alice").cpu == 150
    assert not shares.take("b", Needs(1, 1, 0, "alice"))
    assert shares.take("c", Needs(1, 1, 0, "bob"))


def test_things_that_need_nothing_are_given_back_like_others() -> None:
    shares = Shares()
    for name in ("a", "b"):
        assert shares.take(name, Needs(0, 0, 0, "alice"))
    for name in ("a", "b"):
        shares.give_back(name)
        assert not shares.counts(name)


_NAMES, _OWNERS = st.sampled_from("abcdef"), st.sampled_from(["alice", "bob"])
_STEPS = st.lists(st.tuples(st.sampled_from(["take", "give", "move"]), _NAMES, _OWNERS, st.integers(0, 120)))


@given(_STEPS)
def test_whatever_happens_nobody_holds_more_than_their_share_and_nothing_is_lost(
    steps: list[tuple[str, str, str, int]],
) -> None:
    shares = Shares(lambda _: Share(100, 100))
    for step, name, owner, cpu in steps:
        match step:
            case "take":
                shares.take(name, Needs(cpu, cpu, 0, owner))
            case "give":
                shares.give_back(name)
            case _:
                shares.move(name, owner)
        assert shares.of("alice").cpu <= 100
        assert shares.of("bob").memory <= 100
    for name in "abcdef":
        shares.give_back(name)
    assert shares.of("alice") == shares.of("bob") == Needs(0, 0)
