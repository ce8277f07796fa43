"""Which ways may VMs move, and when? What every migration policy allows; asked by who plans one, and by the dry run."""

from collections.abc import Iterable
from datetime import UTC, datetime

from hansa.federation import selectors
from hansa.federation.policies import checking
from hansa.federation.policies.rules import ALL_DAYS, MigrationPath, MigrationRules, Window
from hansa.federation.registry import Known


def path_refusal(policies: Iterable[tuple[str, MigrationRules]], source: Known, target: Known) -> str:
    """Why nothing may move this way, at any time; empty if all allow it."""
    for name, rules in policies:
        if rules.paths and not any(_means(path, source, target) for path in rules.paths):
            return f"{name} allows {len(rules.paths)} other ways only"
    return ""


def time_refusal(policies: Iterable[tuple[str, MigrationRules]], now: float) -> str:
    """Why nothing may move now; empty if all allow it."""
    for name, rules in policies:
        if rules.windows and not any(is_open(window, now) for window in rules.windows):
            return f"{name} allows it only {' and '.join(in_words(window) for window in rules.windows)}"
    return ""


def is_open(window: Window, now: float) -> bool:
    moment = datetime.fromtimestamp(now, UTC)
    day, minute = moment.weekday(), moment.hour * 60 + moment.minute
    start, end = checking.minutes(window)
    if start < end:
        return ALL_DAYS[day] in window.days and start <= minute < end
    # past midnight: it began today, or yesterday
    return (ALL_DAYS[day] in window.days and minute >= start) or (ALL_DAYS[day - 1] in window.days and minute < end)


def in_words(window: Window) -> str:
    days = "" if set(window.days) == set(ALL_DAYS) else f"{', '.join(window.days)} "
    return f"{days}{window.start}-{window.end} UTC"


def parallel(policies: Iterable[tuple[str, MigrationRules]]) -> tuple[int, int, int]:
    """The least of what they say, 0 being no limit: (in the federation, in one cluster, bytes a second of one)."""
    found = [(rules.parallel, rules.parallel_per_cluster, rules.bandwidth) for _, rules in policies]
    whole, each, bandwidth = (min((one[at] for one in found if one[at]), default=0) for at in range(3))
    return whole, each, bandwidth


def _means(path: MigrationPath, source: Known, target: Known) -> bool:
    return selectors.parse(path.source).matches(source) and selectors.parse(path.target).matches(target)
