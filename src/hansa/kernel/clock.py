"""Time as a thing one can pass in: rooms ask the clock they were given, tests move it by hand."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, UTC."""
        ...


class SystemClock:
    def now(self) -> float:
        return time.time()


def rfc3339(moment: float) -> str:
    """Whole seconds, as OSCAR's clients read them: 2026-01-02T03:04:05Z."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_nanos(moment: float) -> str:
    """The long form used in log lines."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
