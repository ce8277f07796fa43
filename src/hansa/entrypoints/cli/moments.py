"""How do people read the hub's times? Seconds since 1970 become a date, or how long ago it was. Pure."""

from datetime import UTC, datetime

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def moment(at: float | None) -> str:
    """A date and time in UTC; nothing for what never was."""
    if not at:
        return ""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float) -> str:
    """How long, as precisely as one cares: 42 s, 5 min, 3 h, 12 d."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def ago(at: float | None, now: float) -> str:
    """How long ago; clocks of two machines differ, so what is to come was just now."""
    return "never" if at is None else f"{span(now - at)} ago"
