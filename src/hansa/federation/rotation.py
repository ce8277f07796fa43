"""How does one root of trust follow another without a failed call? Four states, one step at a time, each durable.

`next`: every member and every hub is told to trust it, nothing is signed with it. `active`: it signs, and members with
certificates of a former one are told to renew. `retiring`: still trusted, signs nothing. `gone`: nobody holds a
certificate of it any more, and its key is destroyed. `step` decides, from plain values; `turn` is the periodic work
`authority` and carries it out. What people may do about it is in `authorities`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import msgspec

from hansa.federation import judging, senders
from hansa.federation.errors import ChangedMeanwhile
from hansa.federation.ports import Authority, Fence, Note
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.identity import authority

_DAY = 86_400.0
_EARLY = 0.25  # share of a root's life that is left when the next one is made
_BEATS = 12  # so many heartbeats are waited for who does not say that it trusts the next root
_TRIES = 5
_FEW = 200


@dataclass(frozen=True, slots=True)
class Pace:
    """How long each state lasts at least, and what is waited for."""

    settle: float  # seconds until every hub process has surely heard of a change
    patience: float  # seconds we wait for members that report, and do not say that they trust the next root
    life: float  # of a root
    late: float  # seconds after the end of its certificate in which a member may still come back with it


@dataclass(frozen=True, slots=True)
class Holding:
    """What one member has: which roots its certificates are of, until when, and how much it was told."""

    roots: frozenset[str]
    until: float
    reports: bool
    generation: int


@dataclass(frozen=True, slots=True)
class Make:
    why: str


@dataclass(frozen=True, slots=True)
class Activate:
    root: str


@dataclass(frozen=True, slots=True)
class Drop:
    root: str
    why: str


Step = Make | Activate | Drop


def step(
    authorities: Sequence[Authority], holdings: Callable[[], Iterable[Holding]], now: float, pace: Pace
) -> Step | None:
    """What is due now. Holdings are asked for only when they matter."""
    active = next((one for one in authorities if one.state == "active"), None)
    if active is None:
        return Make("there is none")
    coming = next((one for one in authorities if one.state == "next"), None)
    if coming is not None:
        return Activate(coming.root.id) if _is_time(coming, active, holdings, now, pace) else None
    for one in authorities:
        if one.state == "retiring" and (why := _why_drop(one, holdings, now, pace)):
            return Drop(one.root.id, why)
    if _end(active) - now < pace.life * _EARLY:
        return Make("the active one comes to its end")
    return None


def _is_time(
    coming: Authority, active: Authority, holdings: Callable[[], Iterable[Holding]], now: float, pace: Pace
) -> bool:
    waited = now - coming.since
    if waited < pace.settle and now < _end(active):
        return False
    if waited >= pace.patience:
        return True  # whoever has not heard of it yet is shown the link that the former root signed
    return all(one.generation >= coming.version for one in holdings() if one.reports)


def _why_drop(one: Authority, holdings: Callable[[], Iterable[Holding]], now: float, pace: Pace) -> str:
    if now >= _end(one):
        return "it has come to its end"
    if now - one.since < pace.settle:
        return ""
    held = any(one.root.id in member.roots and now < member.until + pace.late for member in holdings())
    return "" if held else "no member needs it any more"


@lru_cache(maxsize=64)
def _end_of(certificate: str) -> float:
    return authority.expires(certificate)


def _end(one: Authority) -> float:
    return _end_of(one.root.certificate)


async def begin(hub: Hub) -> None:
    """At the start of a hub: the roots are read, and the first one is made if there never was any."""
    for _ in range(_TRIES):
        await hub.trust.learn()
        if any(one.state == "active" for one in hub.trust.all):
            return
        await take(hub, Make("there is none"), None)
    raise ChangedMeanwhile("the hub's roots of trust are being changed by others", hint="try again")


async def turn(hub: Hub, fence: Fence) -> None:
    """Periodic: one step at most."""
    due = step(hub.trust.all, lambda: map(_holding, hub.registry), hub.clock.now(), pace_of(hub))
    if due is not None:
        await take(hub, due, fence)


async def take(hub: Hub, due: Step, fence: Fence | None) -> bool:
    """False if somebody else changed the roots meanwhile."""
    now, trust = hub.clock.now(), hub.trust
    expected = trust.version
    by_id = {one.root.id: one for one in trust.all}
    active = next((one for one in trust.all if one.state == "active"), None)
    match due:
        case Make(why):
            new = authority.new_root(trust.domain, now=now, seconds=hub.settings.root_days * _DAY)
            if active is None:
                changed = [Authority(new, "active", now)]
            else:
                changed = [Authority(authority.cross_sign(new, active.root), "next", now)]
            said = f"root {new.id} made: {why}"
        case Activate(root):
            changed = [replace(by_id[root], state="active", since=now)]
            if active is not None:
                changed.append(replace(active, state="retiring", since=now))
            said = f"root {root} signs from now on"
        case Drop(root, why):
            changed = [replace(by_id[root], state="gone", since=now)]
            said = f"root {root} is not trusted any more: {why}"
    taken = await trust.authorities.put(changed, Note("", "authority", said), expected=expected, fence=fence)
    await hub.trust.learn()
    return taken


def watch(hub: Hub) -> None:
    """From now on this hub process tells its members of the roots, and takes up what other processes change."""
    hub.roots = lambda: (hub.trust.roots, hub.trust.version)
    hub.renew = lambda cluster: must_renew(hub, cluster)

    async def on_news(others: frozenset[str]) -> bool:
        if "authorities" not in others:
            return False
        await hub.trust.learn()
        # In a large federation the answers to heartbeats tell them: not thousands shall come for new certificates at
        # the same moment.
        return len(hub.registry) <= _FEW

    hub.on_news.append(on_news)


def pace_of(hub: Hub) -> Pace:
    given = hub.settings
    settle = given.lease_seconds + 10 * given.sync_every
    return Pace(
        settle=settle,
        patience=settle + _BEATS * hub.limits().every,
        life=given.root_days * _DAY,
        late=given.return_days * _DAY,
    )


def must_renew(hub: Hub, cluster: str) -> bool:
    """Whether the certificate a cluster uses is not of the root that signs now."""
    known = hub.registry.get(cluster)
    active = next((one.root.id for one in hub.trust.all if one.state == "active"), "")
    return known is not None and bool(active) and bool(roots_in_use(known) - {active})


def _holding(known: Known) -> Holding:
    record = known.record
    return Holding(
        roots=roots_in_use(known),
        until=record.certificate_until or 0.0,
        reports=record.kind == "hansa" and record.state in ("ready", "degraded", "draining", "leaving"),
        generation=judging.applied_of(known).generation,
    )


def roots_in_use(known: Known) -> frozenset[str]:
    """Of the certificate it showed last; while that is not known, of all it may show."""
    serials = known.record.serials
    shown = known.sections.get(senders.CERTIFICATE)
    if shown is not None:
        serial = msgspec.json.decode(shown[1], type=str)
        if serial in serials:
            serials = (serial,)
    return frozenset(map(authority.root_id, serials))
