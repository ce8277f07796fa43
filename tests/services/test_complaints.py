"""Is trouble that lasts said once and then ever more rarely, with what helps against it?"""

import itertools

import structlog

from hansa.kernel.errors import Temporary
from hansa.services.complaints import Complaints


class HandClock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_same_words_come_again_only_after_growing_pauses() -> None:
    clock = HandClock()
    complaints = Complaints(now=clock)
    heard: list[float] = []
    with structlog.testing.capture_logs() as said:
        for second in range(0, 4 * 3600, 15):
            clock.now = float(second)
            complaints.tell("loop stopped", "loop repair", Temporary("the store is away"))
            if len(said) > len(heard):
                heard.append(clock.now)
    pauses = [later - earlier for earlier, later in itertools.pairwise(heard)]
    assert heard[0] == 0
    assert 6 < len(heard) < 12
    assert pauses == sorted(pauses)
    assert pauses[-1] == pauses[-2] == 3600  # who looks at one hour of the log sees it


def test_other_words_and_a_return_after_it_went_well_are_news() -> None:
    complaints = Complaints(now=HandClock())
    with structlog.testing.capture_logs() as said:
        for words in ("away", "away", "full", "full"):
            complaints.tell("loop stopped", "loop repair", Temporary(words))
        complaints.passed("loop repair")
        complaints.tell("loop stopped", "loop repair", Temporary("full"))
    assert [one["error"] for one in said] == ["away", "full", "full"]


def test_a_hint_is_said_where_there_is_one() -> None:
    complaints = Complaints(now=HandClock())
    with structlog.testing.capture_logs() as said:
        complaints.tell("not repaired", "one", Temporary("away", hint="start the store"))
        complaints.tell("not repaired", "two", Temporary("away"))
    assert [one.get("hint") for one in said] == ["start the store", None]
