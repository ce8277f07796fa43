"""Where is each cluster with each document? Read off what it last said, and whether it is heard."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hansa.federation import judging
from hansa.federation.configuration import assigning
from hansa.federation.configuration.stepping import Reach, Seen
from hansa.federation.documents import RolloutRecord
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.messages.configuration import ClusterVersion
from hansa.messages.members import Applied

_REACH: dict[str, Reach] = {"alive": "here", "suspected": "late", "dead": "away"}
_TAKING = frozenset({"ready", "degraded", "unreachable", "draining"})  # who leaves is not told anything new


@dataclass(frozen=True, slots=True)
class Sight:
    """What one cluster said of its configuration, and whether it is heard."""

    known: Known
    reach: Reach
    applied: Applied

    def version(self, document: str) -> int:
        """It has this version; 0 is none."""
        return next((one.version for one in self.applied.documents if one.name == document), 0)

    def error(self, document: str, wanted: int) -> str:
        """Why it did not take this version (0: its removal)."""
        if not self.applied.error or self.version(document) == wanted:
            return ""
        if self.applied.tried:
            tried = next((one.version for one in self.applied.tried if one.name == document), 0)
            return self.applied.error if tried == wanted else ""
        return self.applied.error


def sight(hub: Hub, known: Known, now: float) -> Sight:
    if known.record.state == "unreachable":
        # heard again, but not judged yet: it is here once everybody says so
        reach: Reach = "away"
    else:
        reach = _REACH[judging.liveness_of(hub, known, now).kind]
    return Sight(known, reach, judging.applied_of(known))


def audience(hub: Hub, rollout: RolloutRecord, now: float) -> dict[str, Seen]:
    """Everyone for whom the rollout changes something: whom the new version means, or the one it has."""
    return {known.id: _seen(hub, rollout, known, now) for known in _concerned(hub, rollout)}


def _concerned(hub: Hub, rollout: RolloutRecord) -> Iterator[Known]:
    records = {
        version: hub.shelf.version("config", rollout.document, version)
        for version in {rollout.version, rollout.former, *rollout.kept.values()}
    }
    for known in hub.registry:
        if known.record.state not in _TAKING or not assigning.can_be_told(known):
            continue
        former = rollout.kept.get(known.id, rollout.former)
        if assigning.is_meant(records[rollout.version], known) or assigning.is_meant(records[former], known):
            yield known


def _seen(hub: Hub, rollout: RolloutRecord, known: Known, now: float) -> Seen:
    seen = sight(hub, known, now)
    record = hub.shelf.version("config", rollout.document, rollout.version)
    new = rollout.version if assigning.is_meant(record, known) else 0
    trouble = judging.health_of(known).missing
    return Seen(
        reach=seen.reach,
        well=not trouble,
        has=seen.version(rollout.document) == new,
        error=seen.error(rollout.document, new),
        trouble="; ".join(trouble),
    )


def standings(hub: Hub, *documents: str) -> Iterator[tuple[str, ClusterVersion]]:
    """Each of these documents with every cluster that should have it, or has it."""
    now = hub.clock.now()
    for known in hub.registry:
        yield from of_cluster(hub, known, documents, now)


def of_cluster(hub: Hub, known: Known, documents: Iterable[str], now: float) -> Iterator[tuple[str, ClusterVersion]]:
    if known.record.state not in _TAKING or known.record.kind != "hansa":
        return
    seen = sight(hub, known, now)
    for document in documents:
        wanted = assigning.wanted(hub.shelf, document, known)
        has = seen.version(document)
        if wanted or has:
            yield document, _standing(seen, document, wanted, has)


def _standing(seen: Sight, document: str, wanted: int, has: int) -> ClusterVersion:
    known, state, error = seen.known, "in-sync", ""
    if has == wanted:
        pass
    elif not assigning.can_be_told(known):
        state, error = "unsupported", f"its manager {known.facts.version} takes no configuration from a hub"
    elif error := seen.error(document, wanted):
        state = "failed"
    elif seen.reach == "away":
        state, error = "out-of-reach", known.record.reason
    else:
        state = "waiting"
    return ClusterVersion(cluster=known.id, desired=wanted, applied=has, state=state, error=error)
