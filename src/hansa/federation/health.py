"""How is the federation as a whole? A score from 100 down to 0, with what every missing point is for.

| what is wrong | points if it is so everywhere |
|---|---|
| clusters that are unreachable | 100 |
| clusters that are degraded | 40 |
| links between clusters that can be reached, but are down | 20 |
| clusters that have not taken what they should know for half a minute | 15 |
| certificates that should have been renewed, with a quarter of their life left | 15 |
| the hub's database is out of reach | 25, at once |

A part costs its share of the points: of clusters by their number or by their cpu, whichever is more. What is wrong
somewhere costs at least one point, so that 100 means that nothing is.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hansa.federation.lifecycle import MEMBER
from hansa.federation.room import Hub
from hansa.kernel.errors import Temporary
from hansa.messages.inventory import FederationStatus, Penalty

UNREACHABLE, DEGRADED, LINKS, BEHIND, CERTIFICATES, DATABASE = 100.0, 40.0, 20.0, 15.0, 15.0, 25.0
GRACE = 30.0  # seconds to take what is new
LATE = 0.25  # of a certificate's life left: it is renewed after half of it
_OLD = 5.0  # seconds without the database, beyond several looks at it
_NAMED = 5
_RECENT = 20
_HOLDERS_EVERY = 2.0


@dataclass(frozen=True, slots=True)
class Seen:
    """All the score depends on."""

    clusters: int = 0  # members
    cpu: int = 0
    unreachable: Sequence[str] = ()
    unreachable_cpu: int = 0
    degraded: Sequence[str] = ()
    degraded_cpu: int = 0
    links: int = 0
    links_down: Sequence[tuple[str, str]] = ()
    behind: Sequence[str] = ()
    expiring: Sequence[str] = ()
    age: float = 0.0
    old: float = _OLD


def judge(seen: Seen) -> tuple[float, tuple[Penalty, ...]]:
    """The score and its reasons, the gravest first."""
    links = [f"{source} to {target}" for source, target in seen.links_down]
    penalties = [
        _share(UNREACHABLE, seen.unreachable, seen.clusters, "unreachable", seen.unreachable_cpu, seen.cpu),
        _share(DEGRADED, seen.degraded, seen.clusters, "degraded", seen.degraded_cpu, seen.cpu),
        _share(LINKS, links, seen.links, "down", what="links"),
        _share(BEHIND, seen.behind, seen.clusters, "behind with what they should know"),
        _share(CERTIFICATES, seen.expiring, seen.clusters, "late with renewing their certificates"),
    ]
    if seen.age > seen.old:
        why = f"the hub's database is out of reach for {seen.age:.0f} s: this is what was known then"
        penalties.append(Penalty(points=DATABASE, reason=why))
    found = sorted((one for one in penalties if one is not None), key=lambda one: -one.points)
    return round(max(0.0, 100.0 - sum(one.points for one in found)), 1), tuple(found)


def _share(
    most: float, named: Sequence[str], of: int, how: str, cpu: int = 0, all_cpu: int = 0, *, what: str = "clusters"
) -> Penalty | None:
    if not named:
        return None
    by_number = len(named) / max(of, len(named))
    by_cpu = cpu / all_cpu if all_cpu > 0 else 0.0
    points = min(most, max(1.0, most * max(by_number, by_cpu)))
    shown = ", ".join(named[:_NAMED]) + (f" and {len(named) - _NAMED} more" if len(named) > _NAMED else "")
    weight = f", {by_cpu:.0%} of the cpu" if cpu else ""
    verb = "is" if len(named) == 1 else "are"
    return Penalty(points=round(points, 1), reason=f"{len(named)} of {of} {what} {verb} {how}{weight}: {shown}")


def look(hub: Hub) -> Seen:
    """Gathers what the score depends on, from memory."""
    counts, cpu = hub.inventory.by_state(), hub.inventory.cpu_by_state()
    links, down = hub.links.count()
    return Seen(
        clusters=sum(_members(counts).values()),
        cpu=sum(_members(cpu).values()),
        unreachable=hub.ailing.ids("unreachable"),
        unreachable_cpu=cpu.get("unreachable", 0),
        degraded=hub.ailing.ids("degraded"),
        degraded_cpu=cpu.get("degraded", 0),
        links=links,
        links_down=sorted((link.source, link.target) for link in down),
        behind=hub.lag.behind(GRACE),
        expiring=hub.ailing.expiring(hub.clock.now() + LATE * hub.settings.certificate_hours * 3600),
        age=hub.age,
        old=_OLD + 3 * hub.settings.sync_every,
    )


def _members(figures: Mapping[str, int]) -> Mapping[str, int]:
    return {state: figure for state, figure in figures.items() if state in MEMBER}


def status(hub: Hub) -> FederationStatus:
    score, reasons = judge(look(hub))
    return FederationStatus(
        at=round(hub.clock.now(), 3),
        age=round(hub.age, 3),
        score=score,
        reasons=reasons,
        clusters=len(hub.registry),
        by_state=dict(sorted(hub.inventory.by_state().items())),
        degraded=hub.ailing.all(),
        recent=hub.recent.newest(_RECENT),
        total=hub.inventory.total(),
        hubs=tuple(sorted({hub.id, *hub.holders.values()})),
        work=dict(sorted(hub.holders.items())),
    )


async def keep_holders(hub: Hub) -> None:
    """For ever: which hub does which work, so that nobody has to ask the database for it."""
    while True:
        with contextlib.suppress(Temporary):  # what was known then stays, and the age tells
            hub.holders = await hub.leases.holders()
        await asyncio.sleep(_HOLDERS_EVERY)
