"""Is a member believed no more about a job's end than can be true?"""

from typing import Any

import pytest

from hansa.services import AwayJob
from hansa.services.delegation import claims
from hansa.services.delegation.claims import Ending

GIVEN, NOW, DAY = 1_000_000.0, 1_000_100.0, 86400.0


def believed(**said: Any) -> Ending:
    """Of a job with half a core, given away 100 seconds ago."""
    return claims.ending(AwayJob("Succeeded", **said), given=GIVEN, now=NOW, millicores=500)


def test_what_can_be_true_is_believed() -> None:
    told = {"started": GIVEN + 10, "finished": GIVEN + 60, "cpu_seconds": 20.0}
    assert believed(**told) == Ending(GIVEN + 10, GIVEN + 60, 20.0)


@pytest.mark.parametrize(
    ("started", "finished", "then"),
    [
        (GIVEN - 391 * DAY, GIVEN - 390 * DAY, (GIVEN, GIVEN)),
        (NOW + DAY, NOW + DAY, (NOW, NOW)),
        (GIVEN + 60, GIVEN + 10, (GIVEN + 10, GIVEN + 10)),
        (GIVEN - DAY, NOW + DAY, (GIVEN, NOW)),
    ],
)
def test_a_job_ran_between_its_leaving_and_now(started: float, finished: float, then: tuple[float, float]) -> None:
    found = believed(started=started, finished=finished)
    assert (found.started, found.finished) == then


def test_what_is_not_told_is_now() -> None:
    assert believed() == Ending(NOW, NOW, 0.0)


def test_it_used_no_more_than_its_cores_could_do() -> None:
    assert believed(cpu_seconds=1e12).cpu_seconds == 50.0


def test_a_clock_that_was_set_back_makes_nothing_negative() -> None:
    assert claims.ending(AwayJob("Failed", cpu_seconds=5.0), given=NOW, now=GIVEN, millicores=500).cpu_seconds == 0.0
