"""Where is each cluster with each document? Read off what it last said, and whether it is heard."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hansa.federation import judging, lifecycle
from hansa.federation.configuration import assigning
from hansa.federation.configuration.assigning import Assignment
from hansa.federation.configuration.stepping import Reach, Seen
from hansa.federation.documents import RolloutRecord
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.federation.shelf import Shelf
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


class Audience:
    """Everyone for whom a rollout changes something: whom the new version means, or the one they have."""

    def __init__(self, shelf: Shelf, rollout: RolloutRecord) -> None:
        versions = {rollout.version, rollout.former, *rollout.kept.values()}
        self._records = {version: shelf.version("config", rollout.document, version) for version in versions}
        self._rollout = rollout
        self.seen: dict[str, Seen] = {}

    def becomes(self, known: Known) -> int | None:
        """The version it should have in the end, 0 being none; None if nothing changes for it."""
        rollout = self._rollout
        if assigning.is_meant(self._records[rollout.version], known):
            return rollout.version
        former = self._records[rollout.kept.get(known.record.id, rollout.former)]
        return 0 if assigning.is_meant(former, known) else None

    def note(self, sight: Sight, new: int, trouble: str) -> None:
        document = self._rollout.document
        self.seen[sight.known.record.id] = Seen(
            reach=sight.reach,
            well=not trouble,
            has=sight.version(document) == new,
            error=sight.error(document, new),
            trouble=trouble,
        )


def look(hub: Hub, audiences: Sequence[Audience], now: float, among: Iterable[Known]) -> None:
    """Notes these clusters wherever they are concerned; each is looked at once."""
    for known in among:
        if known.record.state not in _TAKING or not assigning.can_be_told(known):
            continue
        concerned = [(one, new) for one in audiences if (new := one.becomes(known)) is not None]
        if concerned:
            seen, trouble = sight(hub, known, now), "; ".join(judging.health_of(known).missing)[: lifecycle.LONGEST]
            for one, new in concerned:
                one.note(seen, new, trouble)


def audience(hub: Hub, rollout: RolloutRecord, now: float) -> dict[str, Seen]:
    found = Audience(hub.shelf, rollout)
    look(hub, [found], now, hub.registry)
    return found.seen


def standings(hub: Hub, documents: Sequence[Assignment]) -> Iterator[tuple[str, ClusterVersion]]:
    """Each of these documents with every cluster that should have it, or has it."""
    now = hub.clock.now()
    for known in hub.registry:
        yield from of_cluster(hub, known, documents, now)


def of_cluster(
    hub: Hub, known: Known, documents: Sequence[Assignment], now: float
) -> Iterator[tuple[str, ClusterVersion]]:
    if known.record.state not in _TAKING or known.record.kind != "hansa":
        return
    applied = judging.applied_of(known)
    versions = {one.name: one.version for one in applied.documents}
    for one in documents:
        wanted, has = one.wanted(known), versions.get(one.document, 0)
        if wanted != has:
            yield one.document, _behind(sight(hub, known, now), one.document, wanted, has)
        elif has or one.failure(known.record.id):
            why = one.failure(known.record.id)
            state = "failed" if why else "in-sync"
            yield (
                one.document,
                ClusterVersion(cluster=known.record.id, desired=has, applied=has, state=state, error=why),
            )


def _behind(seen: Sight, document: str, wanted: int, has: int) -> ClusterVersion:
    known = seen.known
    if not assigning.can_be_told(known):
        state, error = "unsupported", f"its manager {known.facts.version} takes no configuration from a hub"
    elif error := seen.error(document, wanted):
        state = "failed"
    elif seen.reach == "away":
        state, error = "out-of-reach", known.record.reason
    else:
        state = "waiting"
    return ClusterVersion(cluster=known.id, desired=wanted, applied=has, state=state, error=error)
