"""In which state is a cluster, and why? Judged by what is wanted of it, whether it is heard, and what it says.

        join                    approve, or by policy                leave
... ─────────► pending ───────────────────────────► ready ◄──► degraded     leaving ─► left
                                                      ▲ │  drain   ▲            ▲
                                                      │ └──────► draining ──────┘
                                                      └── heard again ── unreachable ◄── silence, from any of them
"""

from dataclasses import dataclass

from hansa.federation import pinning
from hansa.federation.detector import Liveness
from hansa.federation.ports import ClusterRecord
from hansa.messages.clusters import State
from hansa.messages.members import Applied, Health

LONGEST = 2000  # characters of a reason: much of it is in a cluster's own words


@dataclass(frozen=True, slots=True)
class Judgement:
    state: State
    reason: str


SEVERAL = (
    "more than one program reports with its key: stop the copy; if there is none of yours the key was stolen, "
    "and the cluster must join again with a token made for it"
)


def judge(
    record: ClusterRecord, liveness: Liveness, health: Health, applied: Applied, *, several: bool = False
) -> Judgement:
    """`several` programs report for it."""
    if record.state in ("pending", "left"):
        return Judgement(record.state, record.reason)  # only somebody's action ends these
    if liveness.kind == "dead":
        return Judgement("unreachable", liveness.reason)
    if record.wanted == "leave":
        return Judgement("leaving", _draining(applied))
    if record.wanted == "drain":
        return Judgement("draining", _draining(applied))
    if liveness.kind == "suspected":
        return Judgement("degraded", liveness.reason)
    wrong = [SEVERAL] if several else []
    if asked := pinning.reason(record):
        wrong.append(asked)
    wrong += health.missing
    if applied.error:
        wrong.append(f"its configuration was not taken: {applied.error}")
    if wrong:
        return Judgement("degraded", "; ".join(wrong)[:LONGEST])
    return Judgement("ready", "it reports, and nothing is missing")


def _draining(applied: Applied) -> str:
    if applied.drained:
        return "drained: nothing of it runs any more"
    if applied.running or applied.waiting:
        return f"{applied.running} jobs run, {applied.waiting} wait"
    return "it was told to drain"


def is_news(record: ClusterRecord, found: Judgement) -> bool:
    """Whether it is worth writing down: another state, or another reason for it. Of silence only the beginning is: the
    seconds go on by themselves."""
    if found.state != record.state:
        return True
    silent = found.state == "unreachable" or found.reason.startswith("no heartbeat")
    return found.reason != record.reason and not silent


# What states allow.

MEMBER: frozenset[State] = frozenset({"ready", "degraded", "unreachable", "draining", "leaving"})


def takes_work(record: ClusterRecord) -> bool:
    """Whether anything new may be placed there."""
    return record.state in ("ready", "degraded") and not record.cordoned
