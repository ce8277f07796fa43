"""Which version of each document should a cluster have, and what does it make together?

Nothing of this is written down for each cluster: it follows from the newest rollout of each document, so one that joins
a moment later, or comes back after days, is told the same as its like.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hansa.federation import live, selectors
from hansa.federation.configuration import stepping
from hansa.federation.documents import DocumentRecord, RolloutRecord, assigned
from hansa.federation.lifecycle import MEMBER
from hansa.federation.registry import Known
from hansa.federation.shelf import Shelf
from hansa.messages.configuration import ToldScope
from hansa.messages.members import Setting


def scope_of(record: DocumentRecord) -> ToldScope:
    return msgspec.convert(record.body.get("scope", {}), ToldScope)


def settings_of(record: DocumentRecord) -> Mapping[str, Any]:
    found: Mapping[str, Any] = record.body.get("settings", {})
    return found


def can_be_told(known: Known) -> bool:
    """Whether there is a manager that takes configuration from its hub. One that does not say what it speaks may."""
    speaks = known.record.told.speaks
    return known.record.kind == "hansa" and (not speaks or "desired.v1" in speaks)


def is_meant(record: DocumentRecord | None, known: Known) -> bool:
    """Whether this version says anything to this cluster."""
    if record is None or record.removed or known.record.kind != "hansa":
        return False
    scope: Mapping[str, str] = record.body.get("scope", {})  # as it is: this is asked for every cluster
    if cluster := scope.get("cluster"):
        return cluster == known.id
    return selectors.parse(scope.get("selector", "")).matches(known)


class Assignment:
    """One document as it stands, to be asked about many clusters."""

    def __init__(self, shelf: Shelf, document: str) -> None:
        self.document = document
        self._shelf = shelf
        self._rollout = shelf.rollout(document)
        self._records: dict[int, DocumentRecord | None] = {0: None}

    def record(self, version: int) -> DocumentRecord | None:
        if version not in self._records:
            self._records[version] = self._shelf.version("config", self.document, version)
        return self._records[version]

    def failure(self, cluster: str) -> str:
        """Why the rollout ended at this cluster; empty if it did not."""
        return self._rollout.failed.get(cluster, "") if self._rollout is not None else ""

    def wanted(self, known: Known) -> int:
        """The version this cluster should have; 0 if there is none, or that does not mean it."""
        version = assigned(self._rollout, known.record.id)
        return version if is_meant(self.record(version), known) else 0


def base_of(rollout: RolloutRecord | None, *, back: bool = False) -> tuple[int, dict[str, int]]:
    """What clusters have where the next rollout of the document begins: (what most have, who has another).

    Of one that is still under way that is what they were given, whether they said already that they took it or not:
    otherwise they would go back, and forth again when the next one reaches them. Unless that goes `back` itself, for
    then nobody else should take this one."""
    if rollout is None:
        return 0, {}
    if rollout.state == "done":
        return rollout.version, {}
    goes_on = rollout.state in stepping.OPEN and not back
    taken = (cluster for cluster, given in rollout.given.items() if goes_on or given.took is not None)
    others = {**rollout.kept, **dict.fromkeys(taken, rollout.version)}
    return rollout.former, {cluster: version for cluster, version in others.items() if version != rollout.former}


@dataclass(frozen=True, slots=True)
class Part:
    """One document at the version a cluster should have."""

    record: DocumentRecord
    rank: int  # federation 0, selector 1, cluster 2: later wins

    @property
    def name(self) -> str:
        return self.record.name


def parts(shelf: Shelf, known: Known) -> list[Part]:
    """What is merged for this cluster, in the order in which later ones win."""
    if known.record.state not in MEMBER or not can_be_told(known):
        return []
    return sorted(_parts(shelf, known), key=lambda part: (part.rank, part.name))


def _parts(shelf: Shelf, known: Known) -> Iterator[Part]:
    for assignment in assignments(shelf):
        record = assignment.record(assignment.wanted(known))
        if record is not None:
            scope = scope_of(record)
            yield Part(record, 2 if scope.cluster else 1 if scope.selector.strip() else 0)


def assignments(shelf: Shelf) -> list[Assignment]:
    """Of every document, by name."""
    return [Assignment(shelf, document) for document in sorted(rollout.document for rollout in shelf.rollouts())]


def told(shelf: Shelf, known: Known) -> tuple[dict[str, object], tuple[Setting, ...]]:
    """The merged tree of settings for a cluster, and the documents it is made of, by name."""
    flat: dict[str, Any] = {}
    found = parts(shelf, known)
    for part in found:
        flat.update(live.leaves(settings_of(part.record)))
    documents = (Setting(name=part.name, version=part.record.version) for part in found)
    return live.grown(flat), tuple(sorted(documents, key=lambda one: one.name))
