"""A cluster reports. Taken into memory at once and answered; written down with others a moment later."""

import itertools
from collections.abc import Sequence

from hansa.federation import desired, kept_changes, section_bodies
from hansa.federation.errors import NotAMember, WasRemoved
from hansa.federation.ports import Note, Sighting
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.federation.senders import CERTIFICATE
from hansa.kernel.errors import Invalid, TooLarge
from hansa.kernel.plain_text import plain
from hansa.messages.members import LARGEST, Heard, Heartbeat, Report

Numbered = tuple[int, Note]

_MOST_SECTIONS = 32
_LARGEST = 4 * 2**20  # bytes of all sections: some ten thousand nodes
_OURS = frozenset({"totals", "nodes", "facts", "health", "applied", "links"})
_MOST_OF_OTHERS = 2**20  # bytes of all sections that this version does not know
_MOST_REPORTS = 1000
_LONGEST = 2000  # characters of a report
_LONGEST_NAME = 63  # of a section
# Kinds of what the hub itself tells of a cluster.
_HUBS_OWN = kept_changes.DECIDED | {"address", "certificate", "facts", "goodbye", "senders", "state"}


def member(hub: Hub, cluster: str, serial: str) -> Known:
    """Whose certificate this is, if it still is a member's."""
    known = hub.registry.get(cluster)
    if known is None:
        if cluster in hub.removed:
            raise WasRemoved(
                f"cluster {cluster} was removed from the federation",
                hint="join again with a new token: hansa cluster join",
            )
        raise NotAMember(f"there is no cluster {cluster} in this federation", hint="join with a token first")
    if serial not in known.record.serials:
        raise NotAMember(
            f"this certificate of cluster {cluster} is not in use any more",
            hint="join again with a new token: hansa cluster join",
        )
    return known


def hear(hub: Hub, known: Known, beat: Heartbeat, serial: str = "") -> Heard:
    """`serial` is of the certificate it was sent with; all hubs learn of it: a root is kept while used."""
    record = known.record
    if beat.incarnation != record.incarnation:
        raise NotAMember(f"cluster {record.id} has joined again since; this is a report of a former life")
    if len(beat.sections) > _MOST_SECTIONS or sum(len(memoryview(one)) for one in beat.sections.values()) > _LARGEST:
        raise TooLarge("the heartbeat is too large", hint=f"{_MOST_SECTIONS} sections, {_LARGEST} bytes at most")
    if not all(map(section_bodies.is_text, beat.sections.values())):
        raise Invalid("a section of the heartbeat is not valid UTF-8", hint="send JSON, which is UTF-8")
    known.complete = known.complete or beat.whole
    # Also when another sender was heard in between: all of this one then takes the place of what that one said.
    misses_some = not beat.whole and (beat.answered != known.number or not known.complete)
    now = hub.clock.now()
    order = max(int(now * 1000), known.order + 1)
    run = plain(beat.run)
    late = known.senders.is_late(run, beat.number)
    sections = {} if late else {name: (order, bytes(beat.sections[name])) for name in _kept(known, beat)}
    shown = b'"%s"' % serial.encode()
    if serial and (beat.whole or known.sections) and known.sections.get(CERTIFICATE, (0, b""))[1] != shown:
        sections[CERTIFICATE] = (order, shown)
    reports = _taken(hub, known, [(one.number, _note(record.id, one)) for one in beat.reports[:_MOST_REPORTS]], now)
    heard = Sighting(record.id, record.incarnation, now, beat.number, sections, reports=reports, run=run)
    hub.registry.hear(heard)
    if serial:
        known.senders.showed(serial, now)
    return Heard(
        number=beat.number,
        desired=desired.generation(hub, record.id),
        every=hub.limits().pace,
        whole=misses_some,
        # Reports are acknowledged once they are written down; until then they come again. Those that were not sent
        # yet are not, whatever numbers another sender used.
        received=min(known.received, _last(beat, reports)),
        state=record.state,
    )


def _taken(hub: Hub, known: Known, reports: Sequence[Numbered], now: float) -> tuple[Numbered, ...]:
    """Up to the first that is more than a cluster may report in this time: that one comes again later. Those that only
    wait to be written down are no more than they were."""
    waiting = hub.registry.waiting_reports(known.id) if reports else frozenset()
    taken = itertools.takewhile(lambda one: one in waiting or known.reporting.spend(now), reports)
    return tuple(taken)


def _last(beat: Heartbeat, taken: tuple[Numbered, ...]) -> int:
    """Up to which number reports of this sender may be acknowledged."""
    if taken:
        return taken[-1][0]
    return max(0, beat.reports[0].number - 1) if beat.reports else LARGEST


def _kept(known: Known, beat: Heartbeat) -> list[str]:
    """The sections we take. What this version does not know is kept and shown, but not without end: under ever new
    names a member could fill the hub."""
    found = [name for name in beat.sections if name in _OURS]
    strange = [name for name in beat.sections if name not in _OURS and name != CERTIFICATE and _is_name(name)]
    if not strange:
        return found
    sizes = {name: len(body) for name, (_, body) in known.sections.items() if name not in _OURS}
    for name in strange:
        fresh = {**sizes, name: len(memoryview(beat.sections[name]))}
        if len(fresh) <= _MOST_SECTIONS and sum(fresh.values()) <= _MOST_OF_OTHERS:
            sizes = fresh
            found.append(name)
    return found


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and name.isprintable()


def _note(cluster: str, one: Report) -> Note:
    """What a cluster reports is told in its own name: it must not look like something that an admin or the hub did."""
    kind = f"said-{one.kind}" if one.kind in _HUBS_OWN else one.kind
    return Note(cluster, plain(kind, 32), plain(one.detail, _LONGEST), one.at)
