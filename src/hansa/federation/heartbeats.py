"""A cluster reports. Taken into memory at once and answered; written down with others a moment later."""

from hansa.federation import desired
from hansa.federation.errors import NotAMember, WasRemoved
from hansa.federation.ports import Note, Sighting
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.kernel.errors import TooLarge
from hansa.messages.members import Heard, Heartbeat

_MOST_SECTIONS = 32
_LARGEST = 4 * 2**20  # bytes of all sections: some ten thousand nodes
_MOST_REPORTS = 1000
_LONGEST = 2000  # characters of a report
CERTIFICATE = "certificate"  # a section of our own: the serial of the certificate a cluster shows


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
    known.complete = known.complete or beat.whole
    misses_some = not beat.whole and (beat.answered > known.number or not known.complete)
    sections = {name: (beat.number, bytes(body)) for name, body in beat.sections.items() if len(name) <= 63}
    shown = b'"%s"' % serial.encode()
    sections.pop(CERTIFICATE, None)
    if serial and (beat.whole or known.sections) and known.sections.get(CERTIFICATE, (0, b""))[1] != shown:
        sections[CERTIFICATE] = (beat.number, shown)
    reports = tuple(
        (one.number, Note(record.id, one.kind[:32], one.detail[:_LONGEST], one.at))
        for one in beat.reports[:_MOST_REPORTS]
    )
    heard = Sighting(record.id, record.incarnation, hub.clock.now(), beat.number, sections, reports=reports)
    hub.registry.hear(heard)
    return Heard(
        number=beat.number,
        desired=desired.generation(hub, record.id),
        every=hub.limits().pace,
        whole=misses_some,
        received=known.received,  # reports are acknowledged once they are written down; until then they come again
        state=record.state,
    )
