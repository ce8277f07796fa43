"""How does a rollout go on? From where it is and what is seen of its clusters now to what is to be done next; pure.

Stage by stage more clusters are given the new version: first a few canaries, then shares of all. A stage ends when
everyone who was given it has it and stayed well for the time of soaking. It stops when more clusters fail than may.

A cluster fails when it says that it did not take the version, when it was well before and is not since it has it, or
when it reports all along but does not take it in time. One that is not heard is no failure: it takes the version when
it is back. Others stand in for those that went silent after they were given it: for one more of them than have it and
are well. Beyond that the silence is no chance any more, and the rollout waits for them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from hansa.federation.documents import Given, RolloutRecord
from hansa.messages.configuration import Stages

Reach = Literal["here", "late", "away"]
UNDER_WAY = frozenset({"running", "soaking"})
OPEN = frozenset({"running", "soaking", "paused"})
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """How one cluster, which the new version or the former one means, is now."""

    reach: Reach = "here"
    well: bool = True
    has: bool = False  # it has what the new version makes of it
    error: str = ""  # why it did not take the new version
    trouble: str = ""  # why it is not well


@dataclass(slots=True)
class Tally:
    """Those that were given the new version, by what became of it."""

    good: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    quiet: list[str] = field(default_factory=list)  # they say nothing now; that stops nobody
    lost: list[str] = field(default_factory=list)  # heard when they were given it, silent for long since
    failed: dict[str, str] = field(default_factory=dict)


def targets(stages: Stages, clusters: int) -> list[int]:
    """How many clusters should have it at each stage."""
    canary = [min(stages.canary, clusters)] if stages.canary else []
    return [*canary, *(-(-clusters * share // 100) for share in stages.percentages)]


def stage_count(stages: Stages) -> int:
    return len(stages.percentages) + bool(stages.canary)


def step(rollout: RolloutRecord, seen: Mapping[str, Seen], now: float) -> RolloutRecord:
    """The rollout as it should be now; itself if there is nothing to be done."""
    if rollout.state not in UNDER_WAY:
        return rollout
    rollout = _noticed(rollout, seen, now)
    tally = tallied(rollout, seen, now)
    if len(tally.failed) > rollout.stages.most_failures:
        return _ended_by_failures(rollout, tally, now)
    return _advanced(rollout, seen, now)


def _noticed(rollout: RolloutRecord, seen: Mapping[str, Seen], now: float) -> RolloutRecord:
    """Keeps the times of each cluster that was given it; who is no longer meant is dropped."""
    noticed = {cluster: _times(one, seen[cluster], now) for cluster, one in rollout.given.items() if cluster in seen}
    return rollout if noticed == rollout.given else replace(rollout, given=noticed)


def _times(given: Given, seen: Seen, now: float) -> Given:
    if seen.has and given.took is None:
        given = replace(given, took=now)
    elif not seen.has and given.took is not None:
        given = replace(given, took=None, at=now)
    if seen.reach == "away" and given.away is None:
        given = replace(given, away=now)
    elif seen.reach == "here" and given.away is not None:
        given = replace(given, away=None, here=True, at=now)  # its time to take it begins anew
    return given


def tallied(rollout: RolloutRecord, seen: Mapping[str, Seen], now: float) -> Tally:
    tally = Tally()
    patience = rollout.stages.patience
    for cluster, given in rollout.given.items():
        one = seen.get(cluster)
        if one is None:
            continue
        if why := _failure(given, one, patience, now):
            tally.failed[cluster] = why
        elif one.reach == "away":
            silent = now - given.away if given.away is not None else 0.0
            if given.here and silent >= patience:
                tally.lost.append(cluster)
            elif given.here and given.took is None:
                tally.waiting.append(cluster)
            else:
                tally.quiet.append(cluster)
        elif not one.has:
            tally.waiting.append(cluster)
        elif one.reach == "here":
            tally.good.append(cluster)
        else:
            tally.quiet.append(cluster)
    return tally


def _failure(given: Given, seen: Seen, patience: float, now: float) -> str:
    late = now - given.at >= patience
    if seen.error and not seen.has and (late or seen.error != given.excused):
        return f"it was not taken: {seen.error}"
    if seen.reach != "here":
        return ""
    if seen.has and given.well and not seen.well:
        return f"not well since it has it: {seen.trouble}"
    if not seen.has and late:
        return f"it reports, but did not take it within {patience:g} s"
    return ""


def _advanced(rollout: RolloutRecord, seen: Mapping[str, Seen], now: float) -> RolloutRecord:
    if not seen:
        return _done(rollout, seen, now)
    plan = targets(rollout.stages, len(seen))
    for _ in range(len(plan) + 1):
        tally = tallied(rollout, seen, now)
        last = rollout.stage >= len(plan) - 1
        counted = len(rollout.given) - len(tally.failed) - len(tally.lost)
        if len(tally.lost) > len(tally.good) + rollout.stages.most_failures + 1:
            return _standing(rollout, "running", f"waits: out of reach since they got it: {listed(tally.lost)}", now)
        if rollout.goal < 0:
            goal = plan[rollout.stage]
            if goal <= counted:  # it brings nobody new
                if last:
                    return _done(rollout, seen, now)
                rollout = replace(rollout, stage=rollout.stage + 1)
                continue
            rollout = replace(rollout, goal=goal)
        goal = min(rollout.goal, plan[rollout.stage])  # newcomers wait for the next stage
        if chosen := _chosen(rollout, seen, goal - counted, last=last):
            return _gave(rollout, seen, chosen, now)
        if tally.waiting:
            return _standing(rollout, "running", f"waits for {listed(tally.waiting)}", now)
        if not tally.good and not last:
            return _standing(rollout, "running", "waits for a cluster that is in reach", now)
        if tally.good and not _soaked(rollout, now):
            return _standing(rollout, "soaking", f"{len(tally.good)} have it and are watched", now)
        if last:
            return _done(rollout, seen, now)
        rollout = replace(rollout, state="running", stage=rollout.stage + 1, goal=-1, since=now)
    raise AssertionError("a stage follows on each other, and the last one ends")


def _chosen(rollout: RolloutRecord, seen: Mapping[str, Seen], short: int, *, last: bool) -> list[str]:
    """Who gets it next: those that are well first, then by name, so that every hub would choose the same. Those out of
    reach prove nothing, and are told with the last stage."""
    if short <= 0:
        return []
    free = [cluster for cluster, one in seen.items() if cluster not in rollout.given and (last or one.reach == "here")]
    free.sort(key=lambda cluster: (seen[cluster].reach != "here", not seen[cluster].well, cluster))
    return free[:short]


def _gave(rollout: RolloutRecord, seen: Mapping[str, Seen], chosen: list[str], now: float) -> RolloutRecord:
    given = {**rollout.given, **{cluster: _gift(seen[cluster], now) for cluster in chosen}}
    return replace(rollout, state="running", reason=f"given to {listed(chosen)}", since=now, given=given)


def _gift(seen: Seen, now: float) -> Given:
    return Given(
        at=now,
        well=seen.well,
        here=seen.reach == "here",
        away=now if seen.reach == "away" else None,
        took=now if seen.has else None,
        excused=seen.error,
    )


def _soaked(rollout: RolloutRecord, now: float) -> bool:
    soak = rollout.stages.soak
    return soak <= 0 or (rollout.state == "soaking" and now - rollout.since >= soak)


def _standing(rollout: RolloutRecord, state: Literal["running", "soaking"], reason: str, now: float) -> RolloutRecord:
    since = rollout.since if rollout.state == state else now
    if (rollout.state, rollout.reason, rollout.since) == (state, reason, since):
        return rollout
    return replace(rollout, state=state, reason=reason, since=since)


def _done(rollout: RolloutRecord, seen: Mapping[str, Seen], now: float) -> RolloutRecord:
    reason = "all have it" if seen else "it means no cluster now"
    away = [cluster for cluster, one in seen.items() if not one.has and one.reach != "here"]
    failed = tallied(rollout, seen, now).failed
    if away or failed:
        reason = "the others have it"
        reason += f"; out of reach, and told when they are back: {listed(away)}" if away else ""
        reason += f"; failed: {listed(failed)}" if failed else ""
    return replace(rollout, state="done", reason=reason, since=now, given={}, kept={})


def _ended_by_failures(rollout: RolloutRecord, tally: Tally, now: float) -> RolloutRecord:
    most = rollout.stages.most_failures
    names = list(tally.failed)
    told = "; ".join(f"{cluster}: {tally.failed[cluster]}" for cluster in names[:_MOST_NAMES])
    more = f"; and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    reason = f"{len(names)} failed, {most} may: {told}{more}"
    if rollout.stages.roll_back:
        return replace(rollout, state="rolled-back", reason=reason, since=now, given={}, failed=tally.failed)
    return replace(stopped(rollout, reason, now), failed=tally.failed)


# What people do.


def paused(rollout: RolloutRecord, who: str, now: float) -> RolloutRecord:
    return replace(rollout, state="paused", reason=f"paused by {who}", since=now)


def stopped(rollout: RolloutRecord, reason: str, now: float) -> RolloutRecord:
    """Who has it keeps it. Who was given it and has not taken it is told to stay with what it has: what was stopped
    must not come into force somewhere days later."""
    taken = {cluster: given for cluster, given in rollout.given.items() if given.took is not None}
    return replace(rollout, state="stopped", reason=reason, since=now, given=taken)


def resumed(rollout: RolloutRecord, seen: Mapping[str, Seen], who: str, now: float) -> RolloutRecord:
    """Goes on where it stood, in spite of what failed so far: times begin anew, who is not well now was not well
    before, and who said why it did not take it tries once more."""
    given = {cluster: _gift(seen[cluster], now) for cluster in rollout.given if cluster in seen}
    return replace(rollout, state="running", reason=f"resumed by {who}", since=now, given=given, failed={})


def listed(names: Iterable[str]) -> str:
    """A few of them, and how many more there are."""
    ordered = sorted(names)
    shown = ", ".join(ordered[:_MOST_NAMES])
    return f"{shown} and {len(ordered) - _MOST_NAMES} more" if len(ordered) > _MOST_NAMES else shown
