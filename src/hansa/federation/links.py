"""How do the clusters reach each other? What every manager measured of the others, as it last said it.

A link to or from a cluster that is no member any more is not shown.
"""

from collections.abc import Iterator

import msgspec

from hansa.federation.lifecycle import MEMBER
from hansa.federation.registry import Registry
from hansa.messages.clusters import Link
from hansa.messages.inventory import Disagreement
from hansa.messages.members import LinkSeen

_SECTION = msgspec.json.Decoder(list[LinkSeen])


class Links:
    """Made once for a registry, and told of its changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._read: dict[str, bytes] = {}
        self._links: dict[str, tuple[Link, ...]] = {}
        for known in registry:
            self.refresh(known.id)
        registry.watch(self.refresh)

    def refresh(self, cluster: str) -> None:
        known = self._registry.get(cluster)
        said = known.sections.get("links") if known is not None else None
        if said is None:
            self._links.pop(cluster, None)
            self._read.pop(cluster, None)
        elif said[1] is not self._read.get(cluster):
            self._read[cluster] = said[1]
            self._links[cluster] = _links(cluster, said[1])

    def all(self, cluster: str = "") -> list[Link]:
        """Those from or to this cluster, or all there are; by source and target."""
        found = (link for link in self._between_members() if not cluster or cluster in (link.source, link.target))
        return sorted(found, key=lambda link: (link.source, link.target))

    def count(self) -> tuple[int, list[Link]]:
        """How many there are between clusters that can be reached, and which of them are down. Those of a cluster
        that is lost altogether say nothing more."""
        total, down = 0, []
        for link in self._between_members():
            if self._is_lost(link.source) or self._is_lost(link.target):
                continue
            total += 1
            if not link.up:
                down.append(link)
        return total, down

    def _between_members(self) -> Iterator[Link]:
        members = {known.id for known in self._registry if known.record.state in MEMBER}
        return (
            link
            for source, links in self._links.items()
            if source in members
            for link in links
            if link.target in members
        )

    def _is_lost(self, cluster: str) -> bool:
        known = self._registry.get(cluster)
        return known is None or known.record.state == "unreachable"


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


def _links(source: str, body: bytes) -> tuple[Link, ...]:
    try:
        seen = _SECTION.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return ()  # of a version that says it differently
    newest = {one.target: one for one in seen if one.target != source}
    return tuple(
        Link(
            source=source,
            target=one.target,
            up=one.up,
            since=one.since,
            latency=one.latency,
            loss=one.loss,
            reason=one.reason,
        )
        for one in newest.values()
    )
