"""Which documents are there, and how far are they? All of it in memory, whatever the database does."""

import bisect
from collections.abc import Iterable, Iterator
from operator import attrgetter

from hansa.federation.documents import DocumentRecord, RolloutRecord, Sort
from hansa.federation.errors import NoSuchDocument

_VERSION = attrgetter("version")


class Shelf:
    def __init__(self) -> None:
        self._documents: dict[Sort, dict[str, list[DocumentRecord]]] = {"config": {}, "policy": {}}
        self._rollouts: dict[str, RolloutRecord] = {}
        self.documents_seq = 0  # what came with later versions of the hub is not here yet
        self.rollouts_seq = 0
        self.edition = 0  # another after every change
        self._told: dict[str, int] = {}
        self._floor = 0

    def newest(self, sort: Sort, *, removed: bool = False) -> Iterator[DocumentRecord]:
        """The newest version of each, by name; those that were removed only if asked for."""
        for _, versions in sorted(self._documents[sort].items()):
            if removed or not versions[-1].removed:
                yield versions[-1]

    def find(self, sort: Sort, name: str) -> DocumentRecord | None:
        """Its newest version, which may say that it was removed."""
        versions = self._documents[sort].get(name)
        return versions[-1] if versions else None

    def get(self, sort: Sort, name: str) -> DocumentRecord:
        """Its newest version, unless that says it was removed."""
        found = self.find(sort, name)
        if found is None or found.removed:
            raise missing(sort, name)
        return found

    def version(self, sort: Sort, name: str, version: int) -> DocumentRecord | None:
        versions = self._documents[sort].get(name, [])
        at = bisect.bisect_left(versions, version, key=_VERSION)
        return versions[at] if at < len(versions) and versions[at].version == version else None

    def versions(self, sort: Sort, name: str) -> list[DocumentRecord]:
        """Newest first."""
        versions = self._documents[sort].get(name)
        if not versions:
            raise missing(sort, name)
        return versions[::-1]

    def rollout(self, name: str) -> RolloutRecord | None:
        """The newest of this document."""
        return self._rollouts.get(name)

    def rollouts(self) -> list[RolloutRecord]:
        return list(self._rollouts.values())

    def told_since(self, cluster: str) -> int:
        """The hub's version that last gave the cluster another version of a document."""
        return max(self._floor, self._told.get(cluster, 0))

    def begin(self, seq: int) -> None:
        """After a start it is not known who was given what when: whoever has less than this asks once more."""
        self._floor = seq

    def forget(self, cluster: str) -> None:
        self._told.pop(cluster, None)

    def gave(self, cluster: str, seq: int) -> None:
        self._told[cluster] = max(seq, self._told.get(cluster, 0))

    def learn_documents(self, records: Iterable[DocumentRecord]) -> None:
        """What the database says, or what was just written."""
        for record in records:
            versions = self._documents[record.sort].setdefault(record.name, [])
            at = bisect.bisect_left(versions, record.version, key=_VERSION)
            versions[at : at + (at < len(versions) and versions[at].version == record.version)] = [record]
            self.edition += 1

    def learn_rollouts(self, records: Iterable[RolloutRecord]) -> None:
        for record in records:
            known = self._rollouts.get(record.document)
            if known is None or (known.id, known.seq) < (record.id, record.seq):
                self._rollouts[record.document] = record
                self.edition += 1


def missing(sort: Sort, name: str) -> NoSuchDocument:
    what, command = ("configuration document", "config") if sort == "config" else ("policy", "policy")
    return NoSuchDocument(f"there is no {what} {name[:63]!r}", hint=f"hansa {command} ls")
