"""Which clusters are there, and how are they? Everything a read needs, in memory, whatever the database does.

Rows come from the database (`learn`), heartbeats from the members' door (`hear`); between two flushes memory is ahead
of the database. Nothing here waits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import msgspec
import structlog

from hansa.federation import reaching, section_bodies
from hansa.federation.allowance import Allowance
from hansa.federation.pinning import facts_of
from hansa.federation.ports import ClusterRecord, News, Note, Sighting
from hansa.federation.senders import CERTIFICATE, Senders
from hansa.messages.clusters import Facts
from hansa.messages.members import Totals

_TOTALS = msgspec.json.Decoder(Totals)
_NOTHING = Totals()
_REPORTS_AT_ONCE, _REPORTS_PER_SECOND = 2000, 10.0  # one who was cut off for long has much to tell
_log = structlog.get_logger("hansa.hub")


@dataclass(slots=True)
class Known:
    """One cluster: its record, and what it last said."""

    record: ClusterRecord
    seen: float | None = None
    number: int = 0  # of the heartbeat that was heard last
    order: int = 0  # the highest number that a hub gave to a section of it
    received: int = 0
    sections: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    complete: bool = False  # all its sections were heard once, here or by another process
    totals: Totals = _NOTHING
    facts_read: int = 0  # the heartbeat whose section `facts` is in the record, or could not be
    gaps: list[float] = field(default_factory=list)  # seconds between its last heartbeats, oldest first
    senders: Senders = field(default_factory=Senders)
    reporting: Allowance = field(default_factory=lambda: Allowance(_REPORTS_AT_ONCE, _REPORTS_PER_SECOND))
    doubted: float = -1e9  # when the history last told of a goodbye that may not be its own
    settled: tuple[object, ...] = ()  # all it was judged by when it was last heard in time and nothing was to be done

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def facts(self) -> Facts:
        return facts_of(self.record)

    def certificates(self, now: float) -> frozenset[str]:
        """The serials of those that are in use: shown not long ago, or with the last heartbeat."""
        last = self.sections.get(CERTIFICATE)
        return self.senders.certificates(now) | ({_serial(last[1])} if last is not None else set())


_MOST_GAPS = 32


class Registry:
    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._unsaved: dict[str, Sighting] = {}
        self._watchers: list[Callable[[str], None]] = []
        self.version = 0
        self.edition = 0  # another whenever a record changed; not for what clusters report
        self.learned: float | None = None  # when memory last was in step with the database, by the database's clock

    def __iter__(self) -> Iterator[Known]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def get(self, cluster: str) -> Known | None:
        return self._known.get(cluster)

    def watch(self, tell: Callable[[str], None]) -> None:
        """`tell` hears the id of every cluster whose record or totals changed, or that is gone; it must not wait."""
        self._watchers.append(tell)

    def learn(self, news: News) -> None:
        """Takes over what the database says."""
        touched: set[str] = set()
        for record in news.clusters:
            known = self._known.get(record.id)
            if known is None or known.record.incarnation != record.incarnation:
                self._known[record.id] = Known(record)
                self._unsaved.pop(record.id, None)
            elif record.version >= known.record.version:
                known.record = record
            touched.add(record.id)
        for cluster in news.removed:
            touched |= self._forget(cluster)
        for sighting in news.sightings:
            if self._merge(sighting):
                touched.add(sighting.cluster)
                self._known[sighting.cluster].complete = True
        self.version = max(self.version, news.version)
        self.learned = news.now
        self.edition += bool(news.clusters or news.removed)
        self._tell(touched)

    def put(self, record: ClusterRecord) -> None:
        """A record this process has just written."""
        known = self._known.get(record.id)
        if known is None or known.record.incarnation < record.incarnation:
            self._known[record.id] = Known(record)
        elif known.record.version <= record.version:
            known.record = record
        self.edition += 1
        self._tell((record.id,))

    def drop(self, cluster: str) -> None:
        self.edition += 1
        self._tell(self._forget(cluster))

    def _forget(self, cluster: str) -> set[str]:
        """Of it, and of what others said of the way to it; whom that changes. What the database says is without it."""
        touched = {cluster}
        self._unsaved.pop(cluster, None)
        if self._known.pop(cluster, None) is None:
            return touched  # after a start thousands are told that never were here
        for known in self._known.values():
            if reaching.SECTION not in known.sections:
                continue
            number, body = known.sections[reaching.SECTION]
            if (rest := reaching.without(body, cluster)) is not body:
                known.sections[reaching.SECTION] = (number, rest)
                touched.add(known.id)
        for ident, waiting in self._unsaved.items():
            if reaching.SECTION in waiting.sections:
                number, body = waiting.sections[reaching.SECTION]
                sections = {**waiting.sections, reaching.SECTION: (number, reaching.without(body, cluster))}
                self._unsaved[ident] = replace(waiting, sections=sections)
        return touched

    def hear(self, sighting: Sighting) -> None:
        """A heartbeat. It is saved with others in a moment."""
        known = self._known[sighting.cluster]
        if known.seen is not None and sighting.seen > known.seen:
            known.gaps.append(sighting.seen - known.seen)
            del known.gaps[:-_MOST_GAPS]
        changed = self._merge(sighting)
        waiting = self._unsaved.get(sighting.cluster)
        self._unsaved[sighting.cluster] = _together(waiting, sighting, known.received)
        if changed:
            self._tell((sighting.cluster,))

    def take_unsaved(self) -> list[Sighting]:
        """What was heard since the last call, one for each cluster, in the order of their ids."""
        taken, self._unsaved = self._unsaved, {}
        return [taken[cluster] for cluster in sorted(taken)]

    def waiting_reports(self, cluster: str) -> frozenset[tuple[int, Note]]:
        """Those of it that were heard, and not saved yet."""
        waiting = self._unsaved.get(cluster)
        return frozenset(waiting.reports) if waiting is not None else frozenset()

    def give_back(self, sightings: list[Sighting]) -> None:
        """They could not be saved; newer ones have come meanwhile, perhaps."""
        for old in sightings:
            known, newer = self._known.get(old.cluster), self._unsaved.get(old.cluster)
            if known is None or known.record.incarnation != old.incarnation:
                continue
            self._unsaved[old.cluster] = old if newer is None else _together(old, newer, known.received)

    def saved(self, sightings: list[Sighting]) -> None:
        """They are written down: their reports can be acknowledged."""
        for one in sightings:
            known = self._known.get(one.cluster)
            if known is not None and known.record.incarnation == one.incarnation and one.reports:
                known.received = max(known.received, one.reports[-1][0])

    def _merge(self, sighting: Sighting) -> bool:
        known = self._known.get(sighting.cluster)
        if known is None or known.record.incarnation != sighting.incarnation:
            return False
        if known.seen is None or sighting.seen > known.seen:
            known.senders.heard(sighting.run, sighting.number, sighting.seen)
            known.seen, known.number = sighting.seen, sighting.number
        else:
            known.senders.also_heard(sighting.run, sighting.seen)
        known.received = max(known.received, sighting.received)
        changed = False
        for name, (number, body) in sighting.sections.items():
            former = known.sections.get(name)
            if former is not None and former[0] >= number:
                continue
            known.sections[name] = (number, body)
            known.order = max(known.order, number)
            if name == CERTIFICATE:  # also of heartbeats that another process heard
                known.senders.showed(_serial(body), sighting.seen)
            if former is None or former[1] != body:
                changed = True
                if name == "totals":
                    known.totals = section_bodies.read(body, _TOTALS, _NOTHING)
        return changed

    def _tell(self, clusters: set[str] | tuple[str, ...]) -> None:
        for tell in self._watchers:
            for cluster in clusters:
                try:
                    tell(cluster)
                except Exception:  # what one of them makes of one cluster keeps nothing from the others
                    _log.exception("a change was not followed", cluster=cluster)


def _together(former: Sighting | None, later: Sighting, received: int) -> Sighting:
    """Both as one. Heartbeats may overtake each other, and a report that comes again because it was not acknowledged
    yet is still one."""
    sections, reports, last = later.sections, later.reports, later
    if former is not None:
        sections = dict(former.sections)
        for name, (number, body) in later.sections.items():
            if name not in sections or sections[name][0] < number:
                sections[name] = (number, body)
        if former.reports:
            reports = tuple(dict.fromkeys((*former.reports, *later.reports)))
        if former.seen > later.seen:
            last = former
    return Sighting(last.cluster, last.incarnation, last.seen, last.number, sections, received, reports, last.run)


def _serial(body: bytes) -> str:
    return body.decode("ascii", "replace").strip('"')
