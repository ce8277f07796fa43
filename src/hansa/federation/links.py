"""How do the clusters reach each other? What every manager measured of the others, as it last said it.

A link to or from a cluster that is no member any more is not shown.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hansa.federation import reaching
from hansa.federation.lifecycle import MEMBER
from hansa.federation.registry import Registry
from hansa.messages.clusters import Link
from hansa.messages.inventory import Disagreement


@dataclass(frozen=True, slots=True)
class _Said:
    """What one cluster says of its links."""

    body: bytes
    links: tuple[Link, ...]
    targets: frozenset[str]
    down: tuple[Link, ...]


class _Tally:
    """Of links between clusters that can be reached; which these are holds for one edition of the registry."""

    def __init__(self, registry: Registry) -> None:
        self.edition = registry.edition
        self.total = 0
        self.down: dict[str, list[Link]] = {}  # by source, where there are any
        self._counts: dict[str, int] = {}
        self._reached = {
            known.id for known in registry if known.record.state in MEMBER and known.record.state != "unreachable"
        }

    def put(self, source: str, said: _Said | None) -> None:
        """What this source says now, instead of what it said before."""
        count, down = 0, list[Link]()
        if said is not None and source in self._reached:
            count = len(said.targets & self._reached)
            down = [link for link in said.down if link.target in self._reached]
        self.total += count - self._counts.get(source, 0)
        self._counts[source] = count
        self.down.pop(source, None)
        if down:
            self.down[source] = down


class Links:
    """Made once for a registry, and told of its changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._said: dict[str, _Said] = {}
        self._tally = _Tally(registry)
        for known in registry:
            self.refresh(known.id)
        registry.watch(self.refresh)

    def refresh(self, cluster: str) -> None:
        known = self._registry.get(cluster)
        section = known.sections.get(reaching.SECTION) if known is not None else None
        former = self._said.get(cluster)
        if section is None:
            self._said.pop(cluster, None)
        elif former is None or section[1] is not former.body:
            self._said[cluster] = _said(cluster, section[1])
        if (said := self._said.get(cluster)) is not former:
            self._tally.put(cluster, said)

    def all(self, cluster: str = "") -> list[Link]:
        """Those from or to this cluster, or all there are; by source and target."""
        found = (link for link in self._between_members() if not cluster or cluster in (link.source, link.target))
        return sorted(found, key=lambda link: (link.source, link.target))

    def count(self) -> tuple[int, list[Link]]:
        """How many there are between clusters that can be reached, and which of them are down. Those of a cluster
        that is lost altogether say nothing more."""
        if self._tally.edition != self._registry.edition:
            self._tally = _Tally(self._registry)
            for source, said in self._said.items():
                self._tally.put(source, said)
        return self._tally.total, [link for links in self._tally.down.values() for link in links]

    def _between_members(self) -> Iterator[Link]:
        members = {known.id for known in self._registry if known.record.state in MEMBER}
        return (
            link
            for source, said in self._said.items()
            if source in members
            for link in said.links
            if link.target in members
        )


def disagreements(links: list[Link]) -> tuple[Disagreement, ...]:
    """Pairs of which only one reaches the other: a firewall, or a wrong address, not a dead cluster."""
    up = {(link.source, link.target): link for link in links}
    found: list[Disagreement] = []
    for (source, target), link in up.items():
        back = up.get((target, source))
        if back is None or not link.up or back.up:
            continue
        why = f": {back.reason}" if back.reason else ""
        detail = f"{source} reaches {target}, but {target} does not reach {source}{why}"
        found.append(Disagreement(clusters=(source, target), detail=detail))
    return tuple(found)


def _said(source: str, body: bytes) -> _Said:
    links = tuple(
        Link(
            source=source,
            target=one.target,
            up=one.up,
            since=one.since,
            latency=one.latency,
            loss=one.loss,
            reason=one.reason,
        )
        for one in reaching.read(body)
        if one.target != source
    )
    newest = {link.target: link for link in links}
    down = tuple(link for link in newest.values() if not link.up)
    return _Said(body, tuple(newest.values()), frozenset(newest), down)
