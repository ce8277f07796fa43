"""How is every cluster now? The periodic work `detector`: judges all, writes down what changed, and why."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec
import structlog
from msgspec.structs import replace as replace_fields

from hansa.federation import describing, detector, lifecycle, pinning, section_bodies
from hansa.federation.errors import BadFacts
from hansa.federation.ports import ClusterRecord, Fence, Note
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.kernel.errors import HansaError
from hansa.kernel.plain_text import plain
from hansa.messages.clusters import Facts
from hansa.messages.members import Applied, Health

_HEALTH, _APPLIED = msgspec.json.Decoder(Health), msgspec.json.Decoder(Applied)
_FACTS = msgspec.json.Decoder(Facts)
_MOST_MISSING = 100  # parts of a cluster
_AT_ONCE = 250  # of thousands; heartbeats and reads get their turn in between
_DESCRIBING = tuple(name for name in Facts.__struct_fields__ if name not in ("endpoint", "verify"))
T = TypeVar("T")
_WELL, _NOTHING_APPLIED = Health(), Applied()
_log = structlog.get_logger("hansa.hub")


def health_of(known: Known) -> Health:
    said = _section(known, "health", _HEALTH, _WELL)
    return replace_fields(said, missing=tuple(plain(one, lifecycle.LONGEST) for one in said.missing[:_MOST_MISSING]))


def applied_of(known: Known) -> Applied:
    said = _section(known, "applied", _APPLIED, _NOTHING_APPLIED)
    return replace_fields(said, error=plain(said.error, lifecycle.LONGEST))


def liveness_of(hub: Hub, known: Known, now: float) -> detector.Liveness:
    since = known.seen if known.seen is not None else known.record.joined
    return detector.judge(hub.attention.silence(since, now), known.gaps, hub.limits())


def judged(hub: Hub, known: Known, now: float) -> ClusterRecord | None:
    """Its record as it should be, if that is news."""
    several = known.senders.several(now)
    # Of two that report by turns nobody knows which is the cluster's own: what was known before stays.
    record = known.record if several else with_facts(known)
    liveness = liveness_of(hub, known, now)
    found = lifecycle.judge(record, liveness, health_of(known), applied_of(known), several=several)
    if not lifecycle.is_news(record, found):
        return record if record is not known.record else None
    since = record.since if found.state == record.state else now
    return replace(record, state=found.state, reason=found.reason, since=since)


def with_facts(known: Known) -> ClusterRecord:
    """Its record with what it says of itself now, if that is new and can be registered."""
    number, body = known.sections.get("facts", (0, b""))
    if number <= known.facts_read:
        return known.record
    said = section_bodies.read(body, _FACTS, None)
    try:
        told = known.record.told if said is None else describing.reported(said)
    except BadFacts:
        told = known.record.told
    if told != known.record.told:
        return replace(known.record, told=told)
    known.facts_read = number  # only now: the write before may have failed
    return known.record


async def all_clusters(hub: Hub, fence: Fence) -> int:
    """How many changed."""
    now, limits = hub.clock.now(), hub.limits()
    in_time = now - limits.suspect_after * limits.every
    found: list[tuple[ClusterRecord, list[Note]]] = []
    for number, known in enumerate(list(hub.registry), 1):
        if not number % _AT_ONCE:
            await asyncio.sleep(0)
        # Most are heard in time and say of themselves what they said before: then nothing about them can be new.
        heard, said = known.seen is not None and known.seen >= in_time, _all_that_counts(known, now)
        if heard and known.settled == said:
            continue
        try:
            new = judged(hub, known, now)
        except Exception:  # whatever it says, the others are judged
            _log.exception("a cluster could not be judged", cluster=known.id)
            new = None
        if new is None:
            known.settled = said if heard else ()
        else:
            found.append((new, _notes(known.record, new)))
    for start in range(0, len(found), _AT_ONCE):
        for written in await _put(hub, found[start : start + _AT_ONCE], fence):
            hub.registry.put(written)
            hub.directory.learn(written)
            hub.waking.wake(written.id)
    return len(found)


async def _put(hub: Hub, found: Sequence[tuple[ClusterRecord, list[Note]]], fence: Fence) -> Sequence[ClusterRecord]:
    """Together, or if that fails each for itself: what cannot be written of one is no reason to write of none."""
    notes = [note for _, notes in found for note in notes]
    try:
        return await hub.clusters.put_all([new for new, _ in found], notes, fence=fence)
    except HansaError:
        raise  # the database is away, or another hub does this now
    except Exception:
        if len(found) == 1:
            _log.exception("what a cluster is found to be could not be written down", cluster=found[0][0].id)
            return []
    return [written for one in found for written in await _put(hub, [one], fence)]


def _notes(old: ClusterRecord, new: ClusterRecord) -> list[Note]:
    notes = []
    if new.told != old.told:
        other = [name for name in _DESCRIBING if getattr(new.told, name) != getattr(old.told, name)]
        if other:
            notes.append(Note(new.id, "facts", f"it says something else of itself: {', '.join(other)}"))
        if (asked := pinning.reason(new)) and asked != pinning.reason(old):
            notes.append(Note(new.id, "address", asked))
    if lifecycle.SEVERAL in new.reason and lifecycle.SEVERAL not in old.reason:
        notes.append(Note(new.id, "senders", lifecycle.SEVERAL))
    if new.state != old.state:
        notes.append(Note(new.id, "state", f"{old.state} -> {new.state}: {new.reason}"))
    return notes


def _all_that_counts(known: Known, now: float) -> tuple[object, ...]:
    """Besides whether it is heard. These are replaced, never changed, so comparing them mostly is one look at each."""
    said = known.sections.get
    return known.record, said("health"), said("applied"), said("facts"), known.senders.several(now)


def _section(known: Known, name: str, decoder: "msgspec.json.Decoder[T]", otherwise: T) -> T:
    found = known.sections.get(name)
    return otherwise if found is None else section_bodies.read(found[1], decoder, otherwise)
