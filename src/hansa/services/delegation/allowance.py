"""For how long may a member keep one of our jobs? Counted by our own clock, whatever the member says.

It may let the job wait for so long. Once it said that the job runs, it has the time that the service's jobs have here:
for the script, and for files to come and to go. Pure.
"""

from dataclasses import dataclass

from hansa.services import orders
from hansa.services.delegation import data_stores
from hansa.services.delegation.ledger import Delegation
from hansa.services.room import Limits
from hansa.services.service import Service


@dataclass(frozen=True, slots=True)
class Allowance:
    """In seconds."""

    waiting: float
    running: float


def of(service: Service | None, limits: Limits, *, event: bytes | None, slack: float) -> Allowance:
    """Where the event is not known, it may name files; `slack` is for links and clocks."""
    script = orders.time_limit(service, limits.time_limit) if service is not None else limits.time_limit
    files = service is None or event is None or data_stores.has_files(service, event)
    moving = 2 * limits.time_limit if files else 0.0  # they may take as long to come, and to go
    return Allowance(limits.wait_at_members, script + moving + slack)


def overdue(one: Delegation, allowed: Allowance, now: float, *, movable: bool) -> str:
    """Why this member had the job for long enough, or "". One that still waits there is left there, for as long as it
    could run, if it is not `movable`: nobody else could run it instead."""
    if one.running is not None and now - one.running > allowed.running:
        return f"{one.cluster_id} did not end it within {allowed.running:.0f} s of its beginning"
    if now - one.given > allowed.waiting + allowed.running:
        return f"{one.cluster_id} had it for {now - one.given:.0f} s and did not end it"
    if one.running is None and movable and now - one.given > allowed.waiting:
        return f"{one.cluster_id} did not begin it within {allowed.waiting:.0f} s"
    return ""
