"""What do people see of the configuration? Documents, versions, rollouts, who has what, and what differs."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from hansa.federation import live
from hansa.federation.configuration import assigning, changing, observing, stepping
from hansa.federation.documents import DocumentRecord, RolloutRecord
from hansa.federation.room import Hub
from hansa.federation.shelf import missing
from hansa.messages.configuration import (
    ClusterVersion,
    Diff,
    Difference,
    Document,
    Documents,
    DocumentState,
    DocumentSummary,
    Drift,
    Overview,
    Rollout,
    RolloutSummary,
    ToldScope,
    Versions,
)


def document(record: DocumentRecord) -> Document:
    return Document(
        name=record.name,
        version=record.version,
        settings=dict(assigning.settings_of(record)),
        scope=assigning.scope_of(record),
        author=record.author,
        comment=record.comment,
        created=record.created,
        removed=record.removed,
    )


def state(hub: Hub, name: str) -> DocumentState:
    """The newest version, how far it is, and where each cluster is."""
    return _state(hub, hub.shelf.get("config", name))


def after(hub: Hub, record: DocumentRecord) -> DocumentState:
    """The same of one that was just written, perhaps to say that it is removed."""
    return _state(hub, record)


def _state(hub: Hub, record: DocumentRecord) -> DocumentState:
    clusters, rollout = _clusters(hub, record.name), hub.shelf.rollout(record.name)
    return DocumentState(
        document=document(record),
        rollout=_rollout(rollout, clusters) if rollout is not None else None,
        clusters=clusters,
    )


def rollout(hub: Hub, name: str) -> Rollout:
    """The newest rollout of a document, also of one that is being removed."""
    found = hub.shelf.rollout(name)
    if found is None:
        raise missing("config", name)
    return _rollout(found, _clusters(hub, name))


def _clusters(hub: Hub, name: str) -> tuple[ClusterVersion, ...]:
    found = observing.standings(hub, [assigning.Assignment(hub.shelf, name)])
    return tuple(sorted((one for _, one in found), key=lambda one: one.cluster))


def _rollout(record: RolloutRecord, clusters: tuple[ClusterVersion, ...]) -> Rollout:
    return Rollout(
        id=record.id,
        document=record.document,
        version=record.version,
        former=record.former,
        state=record.state,
        stage=record.stage + 1,
        stages=stepping.stage_count(record.stages),
        reason=record.reason,
        since=record.since,
        clusters=clusters,
    )


def versions(hub: Hub, name: str) -> Versions:
    return Versions(versions=tuple(document(record) for record in hub.shelf.versions("config", name)))


def version(hub: Hub, name: str, number: int) -> Document:
    return document(changing.version(hub, name, number))


def diff(hub: Hub, name: str, before: int | None, after: int | None) -> Diff:
    """From one version to another; left out, from the one before to the newest."""
    newest = hub.shelf.versions("config", name)[0].version
    after = newest if after is None else after
    before = max(after - 1, 0) if before is None else before
    old, new = (changing.version(hub, name, number) if number else None for number in (before, after))
    one, other = _said(old), _said(new)
    settings = [
        Difference(
            setting=setting, before=one.get(setting), after=other.get(setting), change=_change(setting, one, other)
        )
        for setting in sorted(one.keys() | other.keys())
        if setting not in one or setting not in other or one[setting] != other[setting]
    ]
    scopes = _whom(old), _whom(new)
    return Diff(
        document=name,
        before=before,
        after=after,
        settings=tuple(settings),
        scope=scopes if scopes[0] != scopes[1] else None,
    )


def _said(record: DocumentRecord | None) -> dict[str, object]:
    return dict(live.leaves(assigning.settings_of(record))) if record is not None and not record.removed else {}


def _change(setting: str, old: dict[str, object], new: dict[str, object]) -> str:
    return "added" if setting not in old else "removed" if setting not in new else "changed"


def _whom(record: DocumentRecord | None) -> str:
    return whom(assigning.scope_of(record)) if record is not None and not record.removed else "nobody"


def whom(scope: ToldScope) -> str:
    """A scope in words."""
    return f"cluster {scope.cluster}" if scope.cluster else scope.selector.strip() or "every cluster"


def documents(hub: Hub) -> Documents:
    return Documents(age=hub.age, documents=_summaries(hub, list(_standings(hub))))


def overview(hub: Hub) -> Overview:
    """All documents, and every cluster that does not have what it should have."""
    standings = list(_standings(hub))
    drift = [
        Drift(
            cluster=one.cluster,
            document=name,
            desired=one.desired,
            applied=one.applied,
            state=one.state,
            reason=one.error or "it was told, and has not said yet that it took it",
        )
        for name, one in standings
        if one.desired != one.applied
    ]
    drift.sort(key=lambda one: (one.cluster, one.document))
    return Overview(
        age=hub.age,
        documents=_summaries(hub, standings),
        drift=tuple(drift),
        live=tuple(sorted(live.NAMES)),
    )


def _standings(hub: Hub) -> Iterable[tuple[str, ClusterVersion]]:
    return observing.standings(hub, assigning.assignments(hub.shelf))


def _summaries(hub: Hub, standings: list[tuple[str, ClusterVersion]]) -> tuple[DocumentSummary, ...]:
    """Removed ones stay in the list until nobody has them any more."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, one in standings:
        counts[name][one.state] += 1
    return tuple(
        _summary(hub, record, counts[record.name])
        for record in hub.shelf.newest("config", removed=True)
        if not record.removed or counts[record.name]
    )


def _summary(hub: Hub, record: DocumentRecord, counts: Counter[str]) -> DocumentSummary:
    found = hub.shelf.rollout(record.name)
    return DocumentSummary(
        name=record.name,
        version=record.version,
        scope=assigning.scope_of(record),
        settings=tuple(name for name, _ in live.leaves(assigning.settings_of(record))),
        author=record.author,
        comment=record.comment,
        created=record.created,
        removed=record.removed,
        rollout=_brief(found) if found is not None else None,
        clusters=dict(counts),
    )


def _brief(record: RolloutRecord) -> RolloutSummary:
    return RolloutSummary(
        id=record.id,
        version=record.version,
        state=record.state,
        stage=record.stage + 1,
        stages=stepping.stage_count(record.stages),
        reason=record.reason,
        since=record.since,
    )
