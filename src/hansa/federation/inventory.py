"""What does the whole federation have? Answers for thousands of clusters at once, put together from ready pieces.

Every cluster's part of an answer is kept as bytes until that cluster says something new; when it was last heard
changes with each heartbeat and is set in between. Sums follow every change, so nobody adds up thousands of clusters
to answer one question. Only clusters that belong (not pending ones, nor those that left) count in them.
"""

import asyncio
from collections.abc import Iterable, Sequence
from operator import attrgetter

import msgspec

from hansa.federation import figures, section_bodies
from hansa.federation.figures import Figures, RunningSum
from hansa.federation.lifecycle import MEMBER
from hansa.federation.pinning import facts_of, wish_of
from hansa.federation.ports import ClusterRecord
from hansa.federation.registry import Known, Registry
from hansa.federation.selectors import Selector
from hansa.messages import Message
from hansa.messages.clusters import Cluster
from hansa.messages.inventory import Allocation, ClusterInventory, ClusterStatus, Resource
from hansa.messages.members import Node, Totals

EVERYTHING = Selector()
_NODES = msgspec.json.Decoder(list[Node])
_ANYTHING, _UNSOUND = msgspec.json.Decoder(), object()
_AT_ONCE = 250  # pieces made before others get their turn
_RESOURCES = ("cpu", "memory", "disk", "gpu")


class _Piece:
    """One cluster in one kind of answer."""

    __slots__ = ("_after", "_before", "_made", "_seen")

    def __init__(self, message: Message) -> None:
        # No text before it can hold this: quotes inside a text are escaped.
        before, here, self._after = msgspec.json.encode(message).partition(b'"seen":null')
        assert here
        self._before = before + b'"seen":'
        self._seen: float | None = None
        self._made = b""

    def at(self, seen: float | None) -> bytes:
        if not self._made or self._seen != seen:
            when = b"null" if seen is None else b"%.3f" % seen
            self._made = b"".join((self._before, when, self._after))
            self._seen = seen
        return self._made


class _Entry:
    """One cluster, with what was made of it so far."""

    __slots__ = ("figures", "known", "listed", "nodes", "nodes_from", "part", "record", "region", "totals")

    def __init__(self, known: Known) -> None:
        self.known = known
        self.record: ClusterRecord | None = None
        self.totals: Totals | None = None
        self.nodes = b"[]"
        self.nodes_from: bytes | None = None
        self.update(known)

    def is_current(self, known: Known | None) -> bool:
        return known is self.known and known.record is self.record and known.totals is self.totals

    def update(self, known: Known) -> None:
        """What was made of words that are still true stays."""
        self.known = known
        self.part: _Piece | None = None
        if known.record is not self.record:
            self.record = known.record
            self.region = facts_of(known.record).region
            self.listed: _Piece | None = None
        if known.totals is not self.totals:
            self.totals = known.totals
            self.figures = figures.figures(known.totals)

    @property
    def state(self) -> str:
        """The one it was counted in."""
        assert self.record is not None
        return self.record.state


class Inventory:
    """Made once for a registry, and told of its changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._entries: dict[str, _Entry] = {}
        self._in_order: list[_Entry] | None = None
        self._unmade: set[str] = set()  # who said something new since its part was made
        self._sum = RunningSum()
        self._regions: dict[str, RunningSum] = {}
        self._states: dict[str, RunningSum] = {}
        for known in registry:
            self.refresh(known.id)
        registry.watch(self.refresh)

    def refresh(self, cluster: str) -> None:
        """Something of this cluster changed, or it is gone."""
        known, entry = self._registry.get(cluster), self._entries.get(cluster)
        if entry is not None:
            if entry.is_current(known):
                return
            self._unmade.add(cluster)
            if known is not None and known.record is entry.record:
                self._report(entry, known)
                return
            self._uncount(entry)
        if known is None:
            self._entries.pop(cluster, None)
            self._unmade.discard(cluster)
            self._in_order = None
            return
        if entry is None:
            entry = self._entries[cluster] = _Entry(known)
            self._in_order = None
            self._unmade.add(cluster)
        else:
            entry.update(known)
        self._count(entry)

    async def prepare(self) -> None:
        """To be awaited before `answer`, which then has less to make at once: where nobody has asked for a while, all
        clusters have said something new. Whoever asks meanwhile helps."""
        for number in range(1, len(self._unmade) + 1):
            if not self._unmade:
                return
            if (entry := self._entries.get(self._unmade.pop())) is not None:
                _part(entry)
            if not number % _AT_ONCE:
                await asyncio.sleep(0)

    async def listing(self, age: float, selector: Selector = EVERYTHING) -> bytes:
        """`messages.inventory.Clusters`, as JSON. Others get their turn while it is made: nothing in it is a sum, which
        would have to agree with the rest."""
        chosen, parts = self._chosen(selector), list[bytes]()
        for start in range(0, len(chosen), _AT_ONCE):
            parts.append(b",".join(map(_listed, chosen[start : start + _AT_ONCE])))
            await asyncio.sleep(0)
        return b'{"age":%.3f,"clusters":[%b]}' % (age, b",".join(parts))

    def answer(self, at: float, age: float, selector: Selector = EVERYTHING, *, nodes: bool = False) -> bytes:
        """`messages.inventory.Inventory`, as JSON."""
        chosen = self._chosen(selector)
        whole, regions = self._sums(chosen) if selector else (self.total(), self.regions())
        parts = map(_with_nodes, chosen) if nodes else map(_part, chosen)
        return b'{"at":%.3f,"age":%.3f,"clusters":[%b],"regions":%b,"total":%b}' % (
            at,
            age,
            b",".join(parts),
            msgspec.json.encode(regions),
            msgspec.json.encode(whole),
        )

    def part(self, cluster: str) -> bytes | None:
        """`messages.inventory.ClusterInventory` of one, as JSON; None if there is no such cluster."""
        entry = self._entries.get(cluster)
        return None if entry is None else _part(entry)

    def total(self) -> Totals:
        return figures.totals(self._sum.figures)

    def regions(self) -> dict[str, Totals]:
        return {region: figures.totals(self._regions[region].figures) for region in sorted(self._regions)}

    def by_state(self) -> dict[str, int]:
        """How many clusters are in each state that any is in."""
        return {state: found.count for state, found in self._states.items()}

    def cpu_by_state(self) -> dict[str, int]:
        where = figures.FIELDS.index("cpu")
        return {state: found.figures[where] for state, found in self._states.items()}

    def each(self) -> Iterable[tuple[str, Figures]]:
        """Every cluster that belongs, with its figures."""
        return ((entry.known.id, entry.figures) for entry in self._entries.values() if entry.state in MEMBER)

    def _chosen(self, selector: Selector) -> Sequence[_Entry]:
        if self._in_order is None:
            self._in_order = sorted(self._entries.values(), key=attrgetter("known.record.id"))
        if not selector:
            return self._in_order
        return [entry for entry in self._in_order if selector.matches(entry.known)]

    def _sums(self, chosen: Sequence[_Entry]) -> tuple[Totals, dict[str, Totals]]:
        by_region: dict[str, list[Figures]] = {}
        for entry in chosen:
            if entry.state in MEMBER:
                by_region.setdefault(entry.region, []).append(entry.figures)
        sums = {region: figures.total(by_region[region]) for region in sorted(by_region)}
        return figures.totals(figures.total(sums.values())), {name: figures.totals(one) for name, one in sums.items()}

    def _report(self, entry: _Entry, known: Known) -> None:
        """What a heartbeat mostly changes: it is counted where it was, with other figures."""
        former = entry.figures
        entry.update(known)
        by = figures.difference(entry.figures, former)
        self._states[entry.state].change(by)
        if entry.state in MEMBER:
            self._sum.change(by)
            self._regions[entry.region].change(by)

    def _count(self, entry: _Entry) -> None:
        self._states.setdefault(entry.state, RunningSum()).add(entry.figures)
        if entry.state in MEMBER:
            self._sum.add(entry.figures)
            self._regions.setdefault(entry.region, RunningSum()).add(entry.figures)

    def _uncount(self, entry: _Entry) -> None:
        _take(self._states, entry.state, entry.figures)
        if entry.state in MEMBER:
            self._sum.take(entry.figures)
            _take(self._regions, entry.region, entry.figures)


def cluster_of(known: Known) -> Cluster:
    """One cluster as it is told to people."""
    return _cluster(known, known.seen)


def status_of(known: Known) -> ClusterStatus:
    """How it is, and everything it reported; what is no JSON after all is left out."""
    found = {name: msgspec.Raw(body) for name, (_, body) in sorted(known.sections.items()) if _is_sound(body)}
    record = known.record
    return ClusterStatus(
        state=record.state,
        reason=record.reason,
        since=record.since,
        seen=known.seen,
        wanted=record.wanted,
        cordoned=record.cordoned,
        cluster=cluster_of(known),
        sections=found,
    )


def allocation_of(known: Known, federation: Totals, age: float) -> Allocation:
    """What one cluster has, what of it is used, and what part of the federation it is."""
    resources = {name: _resource(name, known.totals, federation) for name in _RESOURCES}
    return Allocation(cluster=known.id, state=known.record.state, seen=known.seen, age=age, **resources)


def _resource(name: str, totals: Totals, federation: Totals) -> Resource:
    capacity, used = getattr(totals, name), getattr(totals, f"{name}_used")
    everywhere = getattr(federation, name)
    return Resource(
        capacity=capacity,
        used=used,
        free=max(0, capacity - used),
        share=round(used / capacity, 4) if capacity > 0 else 0.0,
        of_federation=round(capacity / everywhere, 6) if everywhere > 0 else 0.0,
    )


def _cluster(known: Known, seen: float | None) -> Cluster:
    record = known.record
    return Cluster(
        id=record.id,
        kind=record.kind,
        state=record.state,
        since=record.since,
        reason=record.reason,
        cordoned=record.cordoned,
        joined=record.joined,
        seen=seen,
        facts=facts_of(record),
        certificate_until=record.certificate_until,
        asks_for=wish_of(record),
    )


def _listed(entry: _Entry) -> bytes:
    if entry.listed is None:
        entry.listed = _Piece(_cluster(entry.known, None))
    return entry.listed.at(entry.known.seen)


def _part(entry: _Entry) -> bytes:
    if entry.part is None:
        record = entry.known.record
        zone = record.overrides.get("zone", record.told.zone)
        entry.part = _Piece(
            ClusterInventory(
                id=record.id,
                kind=record.kind,
                state=record.state,
                region=entry.region,
                zone=zone,
                seen=None,
                totals=entry.known.totals,
            )
        )
    return entry.part.at(entry.known.seen)


def _with_nodes(entry: _Entry) -> bytes:
    """`nodes` comes last and is empty in the part: what the cluster said takes its place as it is."""
    found = entry.known.sections.get("nodes")
    body = found[1] if found is not None else None
    if body is not entry.nodes_from:
        entry.nodes_from, entry.nodes = body, b"[]" if body is None or not _are_nodes(body) else body
    return _part(entry)[:-3] + entry.nodes + b"}"


def _are_nodes(body: bytes) -> bool:
    """Looked at once for each new body: one cluster's nonsense must not spoil the answer about all."""
    return section_bodies.read(body, _NODES, None) is not None


def _is_sound(body: bytes) -> bool:
    return section_bodies.read(body, _ANYTHING, _UNSOUND) is not _UNSOUND


def _take(sums: dict[str, RunningSum], name: str, part: Figures) -> None:
    found = sums[name]
    found.take(part)
    if not found.count:
        del sums[name]
