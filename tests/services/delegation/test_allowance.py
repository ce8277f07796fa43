"""For how long may a member keep one of our jobs, whatever it says?"""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from hansa.services import Limits, Service, events
from hansa.services.delegation import NOBODY, Delegation, allowance
from hansa.services.delegation.allowance import Allowance

LIMITS = Limits(time_limit=100, run_limit=1, attempts=1, queue_limit=1, keep=1, page_size=1, wait_at_members=1000)
ALLOWED = Allowance(waiting=1000, running=300)
AWAY = Delegation("one", 1, "away", "visby", "gray", "https://visby", "p", NOBODY, {}, heard=0.0, given=5000.0)


@pytest.mark.parametrize(
    ("service", "event", "running"),
    [
        ({}, b"text", 107),
        ({"annotations": {"hansa/time-limit": "30s"}}, b"text", 37),
        ({"annotations": {"hansa/time-limit": "9h"}}, b"text", 107),  # no more than the cluster allows
        ({"output": [{"storage_provider": "minio.default", "path": "b/out"}]}, b"text", 307),
        ({"mount": {"storage_provider": "minio.default", "path": "b/in"}}, b"text", 307),
        ({}, events.minio_event("b", "in/x", size=1, etag="e", at=1.0), 307),
        ({}, None, 307),  # nobody knows whether it names a file
    ],
)
def test_the_service_and_its_files_say_how_long(service: dict[str, Any], event: bytes | None, running: float) -> None:
    given = msgspec.convert({"name": "gray", **service}, Service)
    assert allowance.of(given, LIMITS, event=event, slack=7) == Allowance(1000, running)


@pytest.mark.parametrize(
    ("now", "running", "movable", "words"),
    [
        (5999, None, True, ""),
        (6001, None, True, "did not begin it within 1000 s"),
        (6001, None, False, ""),
        (6301, None, False, "had it for 1301 s"),
        (6299, 6000.0, True, ""),
        (6301, 6000.0, True, "did not end it within 300 s"),
        (6301, 6200.0, True, "had it for 1301 s"),
        (6301, 6000.0, False, "did not end it within 300 s"),
    ],
)
def test_what_it_says_changes_nothing(now: float, running: float | None, movable: bool, words: str) -> None:
    told = allowance.overdue(replace(AWAY, running=running), ALLOWED, now, movable=movable)
    assert words in told
    assert bool(words) == bool(told)
