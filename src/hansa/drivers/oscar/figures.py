"""Which of a peer's figures can be true? Times near our own, exit codes as systems have them, durations as jobs have.

Peers may lie or be broken. A time that cannot be is left out, any other figure is cut to what can be, so that whoever
keeps, adds up or shows them needs no second look.
"""

import math
from typing import Any

_DAY = 86400.0
_BACK, _AHEAD = 400 * _DAY, _DAY  # seconds: longer than a job takes; further than clocks differ
_SMALLEST_CODE, _LARGEST_CODE = -(2**31), 2**31 - 1
_MOST_SECONDS = 1e12  # a million processors for eleven days


def moment(value: Any, now: float) -> float | None:
    """A time, in seconds since 1970; None for what is none, or too far from now."""
    found = number(value)
    return found if found is not None and now - _BACK <= found <= now + _AHEAD else None


def exit_code(value: Any) -> int | None:
    """None for what is no whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return min(max(value, _SMALLEST_CODE), _LARGEST_CODE)


def seconds(value: Any) -> float:
    """How long something took; 0 for what is no number."""
    return min(max(number(value) or 0.0, 0.0), _MOST_SECONDS)


def number(value: Any) -> float | None:
    """None for what is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None
