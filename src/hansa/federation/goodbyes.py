"""Does a cluster itself say that it leaves? Whoever has a copy of its key can say so, too. Pure.

A goodbye is believed of the program that reported last, if no other has reported for long: it shows its mark, which
nobody else knows (`senders`). A manager of an earlier release shows none; it is believed if the program that reports
has said that it is drained, which nobody at the hub asked for. All others wait: until they are believed, or until an
admin of the hub lets the cluster go.
"""

from hansa.federation import judging
from hansa.federation.registry import Known

BEATS = 120  # so many heartbeats could have come from another: ten minutes, as the settings come
_AT_THE_DOOR = 60.0  # seconds: whoever reports so soon after the join is who joined


def is_its_own(known: Known, run: str, now: float, every: float) -> bool:
    """`every` is the time between two heartbeats."""
    record, senders = known.record, known.senders
    if record.wanted == "leave" or senders.run is None:
        return True  # an admin wants it gone; or it never reported, and nobody is there to be shut out
    shows_it = run != "" and run == senders.run
    said_before = not run and record.wanted == "member" and judging.applied_of(known).drained
    if not (shows_it or said_before) or senders.several(now):
        return False
    if senders.is_first and senders.alone_since - record.joined < _AT_THE_DOOR:
        return True
    return now - senders.alone_since >= BEATS * every
