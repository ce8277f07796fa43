"""Which stretch of time is asked about? RFC 3339 moments, by default the last 24 hours."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hansa.kernel.errors import Invalid

_FORM = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_USUAL = timedelta(hours=24)


class BadWindow(Invalid):
    """The start or end of a time window is not valid."""

    code = "usage.bad-window"


@dataclass(frozen=True, slots=True)
class Window:
    start: datetime
    end: datetime

    @classmethod
    def of(cls, start: str, end: str, now: float) -> "Window":
        """Both may be empty: the end is then now, the start a day before the end."""
        last = _moment("end", end) if end.strip() else datetime.fromtimestamp(now, UTC)
        try:
            first = _moment("start", start) if start.strip() else last - _USUAL
        except OverflowError:
            raise BadWindow("the end is too early", hint="give a start, too") from None
        if last < first:
            raise BadWindow("end must be after start", hint="swap them, or leave one out")
        return cls(first, last)

    def shown(self) -> tuple[str, str]:
        return _text(self.start), _text(self.end)


def _moment(name: str, text: str) -> datetime:
    found = _FORM.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        fraction = found.group(1) or ""
        exact = text.strip().upper().replace(fraction, fraction[:7], 1) if fraction else text.strip().upper()
        return datetime.fromisoformat(exact).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadWindow(
            f"invalid {name} timestamp", hint="write it as 2026-01-02T03:04:05Z, with + as %2B in a URL"
        ) from None


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds" if moment.microsecond == 0 else "microseconds").replace("+00:00", "Z")
