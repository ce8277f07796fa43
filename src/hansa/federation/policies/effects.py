"""What would be different? A policy as it is and as it would be, held against every cluster; pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec

from hansa.federation import detector, judging, selectors
from hansa.federation.detector import Limits, Liveness
from hansa.federation.lifecycle import MEMBER
from hansa.federation.lifecycle import judge as judge_state
from hansa.federation.policies import admission, in_force, migration, network, placement
from hansa.federation.policies.rules import (
    AdmissionRules,
    FederationRules,
    MigrationRules,
    NetworkRules,
    PlacementRules,
    Rules,
)
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.messages.policies import Effect, PolicyKind


@dataclass(slots=True)
class Alike:
    """Effects of one sort: how many, and each, if anybody wants to see it."""

    count: int
    each: Iterator[Effect]


Named = Sequence[tuple[str, Any]]  # all policies of the kind, with their names


def differences(old: Rules, new: Rules) -> list[str]:
    """Of the rules themselves, by name."""
    before, after = msgspec.to_builtins(old), msgspec.to_builtins(new)
    return [
        f"{name}: {_shown(before[name])} -> {_shown(after[name])}" for name in before if before[name] != after[name]
    ]


def _shown(value: Any) -> str:
    return "not said" if value is None or value in ("", [], {}) else msgspec.json.encode(value).decode()


def of(hub: Hub, kind: PolicyKind, before: Named, after: Named, most: int) -> tuple[list[Effect], int]:
    """Everything that would be otherwise, at most so many; and how many more."""
    shown: list[Effect] = []
    count = 0
    for found in _found(hub, kind, before, after):
        count += found.count
        shown += islice(found.each, most - len(shown))
    return shown, count - len(shown)


def _found(hub: Hub, kind: PolicyKind, before: Named, after: Named) -> Iterator[Alike]:
    match kind:
        case "federation":
            yield from _single(_federation(hub, before, after))
        case "placement":
            yield from _single(_placement(hub, before, after))
        case "network":
            yield from _pairs(hub, before, after, network.refusal, "may talk", _network_texts)
        case "migration":
            yield from _pairs(hub, before, after, migration.path_refusal, "may move", _migration_texts)
            yield from _single(_migration_limits(hub, before, after))
        case "admission":
            yield from _single(_admission(hub, _only(before), _only(after)))


def _single(effects: Iterator[Effect]) -> Iterator[Alike]:
    for effect in effects:
        yield Alike(1, iter((effect,)))


def warnings(hub: Hub, kind: PolicyKind, before: Named, after: Named) -> Iterator[str]:
    """What somebody should think about twice."""
    members = [known for known in hub.registry if known.record.state in MEMBER]
    match kind:
        case "federation":
            old, new = _limits(hub, before), _limits(hub, after)
            was, becomes = old.every * old.dead_after, new.every * new.dead_after
            if was != becomes:
                yield f"a loss is noticed after {becomes:g} s instead of {was:g} s"
        case "placement":
            if members and all(placement.refusal(after, known) for known in members):
                yield "nothing could be placed anywhere"
        case "migration":
            if time := migration.time_refusal(after, hub.clock.now()):
                yield f"nothing may move now: {time}"
        case "admission":
            most = _only(after).most_clusters
            if most and len(members) >= most:
                yield f"there are {len(members)} members already: nobody else could join"


def _placement(hub: Hub, before: Named, after: Named) -> Iterator[Effect]:
    for known in _members(hub):
        old, new = placement.refusal(before, known), placement.refusal(after, known)
        if old != new:
            yield Effect(subject=known.id, before=_may("may be used", old), after=_may("may be used", new))


def _may(what: str, refusal: str) -> str:
    return f"not: {refusal}" if refusal else what


def _members(hub: Hub) -> list[Known]:
    return sorted((known for known in hub.registry if known.record.state in MEMBER), key=lambda known: known.id)


def _limits(hub: Hub, policies: Named) -> Limits:
    rules = policies[0][1] if policies else FederationRules()
    return in_force.limits_of(rules, hub.settings)


def _federation(hub: Hub, before: Named, after: Named) -> Iterator[Effect]:
    """Clusters that would be judged otherwise at this moment."""
    old, new, now = _limits(hub, before), _limits(hub, after), hub.clock.now()
    if old.every != new.every:
        yield Effect(subject="federation", before=f"reports every {old.every:g} s", after=f"every {new.every:g} s")
    for known in _members(hub):
        judged = [
            judge_state(
                known.record,
                _liveness(hub, known, limits, now),
                judging.health_of(known),
                judging.applied_of(known),
            )
            for limits in (old, new)
        ]
        if judged[0].state != judged[1].state:
            words = [f"{one.state}: {one.reason}" for one in judged]
            yield Effect(subject=known.id, before=words[0], after=words[1])


def _liveness(hub: Hub, known: Known, limits: Limits, now: float) -> Liveness:
    since = known.seen if known.seen is not None else known.record.joined
    return detector.judge(hub.attention.silence(since, now), known.gaps, limits)


def _network_texts(policies: Named) -> list[str]:
    return [text for _, rules in policies for rule in rules.rules for text in (rule.source, rule.target)]


def _migration_texts(policies: Named) -> list[str]:
    return [text for _, rules in policies for path in rules.paths for text in (path.source, path.target)]


def _pairs(
    hub: Hub,
    before: Named,
    after: Named,
    refusal: Callable[[Named, Known, Known], str],
    may: str,
    texts: Callable[[Named], list[str]],
) -> Iterator[Alike]:
    """Ordered pairs. Clusters that every selector takes for the same are asked about once, so that thousands of them
    are not millions of questions."""
    members = _members(hub)
    asked = sorted({*texts(before), *texts(after)})
    alike: dict[tuple[bool, ...], list[Known]] = {}
    for known in members:
        alike.setdefault(tuple(selectors.parse(text).matches(known) for text in asked), []).append(known)
    for sources in alike.values():
        for targets in alike.values():
            old, new = refusal(before, sources[0], targets[0]), refusal(after, sources[0], targets[0])
            if bool(old) != bool(new):
                words = _may(may, old), _may(may, new)
                count = len(sources) * len(targets) - (len(sources) if sources is targets else 0)
                pairs = ((one, other) for one in sources for other in targets if one is not other)
                yield Alike(count, (_effect(f"{one.id} -> {other.id}", *words) for one, other in pairs))


def _effect(subject: str, before: str, after: str) -> Effect:
    return Effect(subject=subject, before=before, after=after)


def _migration_limits(hub: Hub, before: Named, after: Named) -> Iterator[Effect]:
    now = hub.clock.now()
    old, new = migration.time_refusal(before, now), migration.time_refusal(after, now)
    if old != new:
        yield Effect(subject="federation", before=_may("may move now", old), after=_may("may move now", new))
    names = ("migrations at once", "migrations at once in one cluster", "bytes a second of one migration")
    for name, one, other in zip(names, migration.parallel(before), migration.parallel(after), strict=True):
        if one != other:
            yield Effect(subject="federation", before=f"{name}: {one or 'any'}", after=f"{name}: {other or 'any'}")


def _only(policies: Named) -> AdmissionRules:
    return policies[0][1] if policies else AdmissionRules()


def _admission(hub: Hub, old: AdmissionRules, new: AdmissionRules) -> Iterator[Effect]:
    """Who waits and would be let in, and who is in and would not be any more. Nobody is removed by it."""
    there = sorted((known for known in hub.registry if known.record.state != "left"), key=lambda known: known.id)
    others = len(there) - 1
    for known in there:
        if known.record.kind != "hansa":
            continue
        if known.record.state == "pending":
            words = [_verdict(admission.judge(rules, known, others, False)) for rules in (old, new)]
        else:
            words = [_may("meets what is required", admission.refusal(rules, known)) for rules in (old, new)]
        if words[0] != words[1]:
            yield Effect(subject=known.id, before=words[0], after=words[1])


def _verdict(found: admission.Verdict) -> str:
    return f"{found.kind}: {found.reason}"


def empty(kind: PolicyKind) -> Rules:
    """A policy that changes nothing."""
    kinds: dict[PolicyKind, Rules] = {
        "federation": FederationRules(),
        "placement": PlacementRules(),
        "network": NetworkRules(),
        "migration": MigrationRules(),
        "admission": AdmissionRules(),
    }
    return kinds[kind]
