"""Whose goodbye is believed? That of the cluster's own program, and of nobody who only has its key."""

from dataclasses import replace
from typing import Any

import pytest

from federation.known_clusters import filled, record, sighting
from hansa.federation import Known, News
from hansa.federation.goodbyes import BEATS, is_its_own
from hansa.messages.members import Applied

EVERY = 5.0
LONG = BEATS * EVERY


class Visby:
    """Joined at 0; `hears` is the heartbeat of one program."""

    def __init__(self, **changes: Any) -> None:
        self.registry = filled(record("visby", joined=0.0, **changes))
        self.number = 0

    @property
    def known(self) -> Known:
        found = self.registry.get("visby")
        assert found is not None
        return found

    def hears(self, run: str, at: float, *, drained: bool = False) -> None:
        self.number += 1
        heard = sighting("visby", self.number, seen=at, applied=Applied(drained=drained))
        self.registry.hear(replace(heard, run=run))

    def hears_for_long(self, run: str, since: float, *, drained: bool = False) -> float:
        for turn in range(BEATS + 1):
            self.hears(run, since + turn * EVERY, drained=drained)
        return since + LONG

    def believes(self, run: str, at: float) -> bool:
        return is_its_own(self.known, run, at, EVERY)


def test_one_that_joined_and_runs() -> None:
    visby = Visby()
    visby.hears("own", 1.0)
    assert visby.believes("own", 2.0)
    assert visby.believes("own", visby.hears_for_long("own", 6.0))


def test_one_that_never_reported() -> None:
    assert Visby().believes("", 1.0)


@pytest.mark.parametrize("mark", ["", "stolen"])
def test_a_thief_who_only_says_goodbye(mark: str) -> None:
    visby = Visby()
    now = visby.hears_for_long("own", 1.0)
    assert not visby.believes(mark, now)
    assert visby.believes("own", now)


@pytest.mark.parametrize("mark", ["", "stolen"])
def test_a_thief_who_reports_as_well(mark: str) -> None:
    """However often, and whatever it says: the cluster's own program is heard in between."""
    visby = Visby()
    now = visby.hears_for_long("own", 1.0)
    for turn in range(3 * BEATS):
        now += EVERY
        visby.hears(mark, now - 1, drained=True)
        assert not visby.believes(mark, now - 1)
        visby.hears("own", now)
        assert not visby.believes(mark, now), turn


def test_a_thief_who_is_there_soon_after_the_join() -> None:
    visby = Visby()
    visby.hears("own", 1.0)
    visby.hears("stolen", 2.0)
    assert not visby.believes("stolen", 2.0)


def test_a_thief_who_reports_to_another_hub_process() -> None:
    """This one hears the thief only, more often than what others heard is learned."""
    visby = Visby()
    visby.hears("own", 1.0)
    for turn in range(3 * BEATS):
        now = 100.0 + turn * EVERY
        visby.hears("stolen", now, drained=True)
        visby.registry.learn(News(1, 0.0, sightings=[replace(sighting("visby", 9, seen=now - 1), run="own")]))
    assert not visby.believes("stolen", now)
    assert not visby.believes("", now)


def test_one_that_was_restarted_waits_until_it_is_certain() -> None:
    visby = Visby()
    now = visby.hears_for_long("before", 1.0)
    visby.hears("after", now + EVERY)
    assert not visby.believes("after", now + EVERY)
    now = visby.hears_for_long("after", now + EVERY)
    assert visby.believes("after", now)
    assert not visby.believes("before", now)


def test_one_whose_hub_was_restarted_waits_as_well() -> None:
    """The hub does not know who else reported before."""
    visby = Visby()
    visby.hears("own", 10_000.0)
    assert not visby.believes("own", 10_001.0)
    assert visby.believes("own", visby.hears_for_long("own", 10_005.0))


def test_one_of_an_earlier_release_has_said_before_that_it_is_drained() -> None:
    visby = Visby()
    now = visby.hears_for_long("own", 1.0)
    assert not visby.believes("", now)
    visby.hears("own", now + EVERY, drained=True)
    assert visby.believes("", now + EVERY)


def test_that_the_hub_drains_it_says_nothing_of_leaving() -> None:
    visby = Visby(wanted="drain")
    now = visby.hears_for_long("own", 1.0, drained=True)
    assert not visby.believes("", now)
    assert visby.believes("own", now)


def test_whom_an_admin_lets_go_is_believed_anyway() -> None:
    visby = Visby(wanted="leave")
    visby.hears("before", 100.0)
    visby.hears("after", 101.0)
    assert visby.believes("", 102.0)
