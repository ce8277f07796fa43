"""Who may join? Decided by what a cluster says of itself, before anybody has heard a report of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hansa.federation import selectors
from hansa.federation.policies import in_force
from hansa.federation.policies.rules import AdmissionRules
from hansa.federation.ports import ClusterRecord
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.messages.clusters import Facts


@dataclass(frozen=True, slots=True)
class Verdict:
    kind: Literal["approve", "by-hand", "refuse"]
    reason: str


def admit(hub: Hub, cluster: str, facts: Facts, token_approves: bool) -> Verdict:
    """Whether a cluster that shows a good token is let in, and whether somebody must approve it first."""
    former = hub.registry.get(cluster)
    record = ClusterRecord(
        id=cluster,
        kind="hansa",
        state="pending",
        since=0.0,
        reason="",
        incarnation=0,
        joined=0.0,
        told=facts,
        endpoint=facts.endpoint,
        overrides=former.record.overrides if former is not None else {},
    )
    present = sum(count for state, count in hub.inventory.by_state().items() if state != "left")
    others = present - (former is not None and former.record.state != "left")
    return judge(in_force.admission(hub), Known(record), others, token_approves)


def judge(rules: AdmissionRules, known: Known, others: int, token_approves: bool) -> Verdict:
    """Pure: what the rules say of one cluster, when there are so many others."""
    if why := refusal(rules, known):
        return Verdict("refuse", why)
    if rules.most_clusters and others >= rules.most_clusters:
        return Verdict("refuse", f"the federation has {others} clusters, and {rules.most_clusters} are the most")
    if rules.approve.strip() and selectors.parse(rules.approve).matches(known):
        return Verdict("approve", f"approved by policy: {rules.approve.strip()}")
    if token_approves and rules.tokens:
        return Verdict("approve", "approved by its token")
    return Verdict("by-hand", "somebody must approve it")


def refusal(rules: AdmissionRules, known: Known) -> str:
    """Which requirements it does not meet; empty if it meets all."""
    return "; ".join(f"{needed} is required" for needed in _requirements(rules) if not _meets(needed, known))


def _requirements(rules: AdmissionRules) -> Iterator[str]:
    """One term each, so that the answer can name those that are not met."""
    yield from map(str, selectors.parse(rules.required).terms)
    if rules.regions:
        yield str(selectors.Term("region", "in", rules.regions))
    yield from rules.abilities
    if rules.least_version:
        yield f"version>={rules.least_version}"


def _meets(needed: str, known: Known) -> bool:
    return selectors.parse(needed).matches(known)
