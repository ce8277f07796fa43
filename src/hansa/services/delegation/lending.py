"""With which keys does another cluster reach the data of a job that it runs for us? With ones lent for that job alone.

They open its inputs and its outputs in our store, and end when the job does, or when it is taken from that cluster.
"""

import json

from hansa.kernel import names
from hansa.kernel.errors import NotFound
from hansa.services import events, orders
from hansa.services.delegation.ledger import READS, Delegation, is_adopted_name
from hansa.services.ports import Record
from hansa.services.room import Room
from hansa.storage import NOTHING, Reach

_LONGEST = 1024  # an object's name


async def lend(room: Room, name: str, record: Record, job: str, event: bytes, submitter: str) -> dict[str, str]:
    """Our store, with keys for what a run of this job may touch."""
    order = orders.make(room, record, job, event, submitter=submitter)
    return dict(await room.away_keys.lend(name, order))


async def lend_while(room: Room, given: Delegation, record: Record, event: bytes, submitter: str) -> dict[str, str]:
    """The same to whoever has the job: keys that came late, when it was theirs no more, have ended when this raises."""
    store = await lend(room, of(given), record, given.job, event, submitter)
    now = await room.delegations.get(given.job)
    if now is None or (now.epoch, now.permit) != (given.epoch, given.permit) or now.phase not in ("offering", "away"):
        await end(room, of(given))
        raise NotFound(f"job {given.known_as} has gone elsewhere")
    return store


async def reach_now(room: Room, job: str) -> Reach:
    """What a run of this job may touch in our store as things are. Raises `Forbidden`."""
    found = await room.jobs.get(job)
    given = await room.delegations.get(job) if is_adopted_name(job) else None
    if given is not None:
        service, (submitter, event) = given.of_service, _of_adopted(room, given)
    elif found is not None:
        service, submitter, event = found.service, found.owner, found.event
    else:
        return NOTHING
    record = room.records.get(service)
    return orders.make(room, record, job, event, submitter=submitter).reach if record is not None else NOTHING


def reads(submitter: str, event: bytes) -> list[str]:
    """What is remembered of the event of a job that is none of ours: enough to say what it may touch."""
    given = events.interpret(event)
    if not isinstance(given, events.ObjectInput) or not names.is_bucket(given.bucket):
        return [submitter]
    if len(given.key) > _LONGEST or len(given.provider) > _LONGEST:
        return [submitter]  # no store has such an object
    return [submitter, given.provider, given.bucket, given.key]


def _of_adopted(room: Room, given: Delegation) -> tuple[str, bytes]:
    """As `reads` has it; one that an older version noted has what its service names, by its owner's right."""
    record = room.records.get(given.of_service)
    submitter, *what = given.decision.get(READS) or [record.service.owner if record is not None else ""]
    if not what:
        return submitter, b""
    provider, bucket, key = what
    event = events.minio_event(bucket, key, size=0, etag="", at=0.0).decode()
    return submitter, json.dumps({"storage_provider": provider, "event": event}).encode()


async def end(room: Room, name: str) -> None:
    """A store that is away now ends them as soon as it is back; their job has lost its right to publish."""
    await room.away_keys.end(name)


def of(given: Delegation) -> str:
    """The name of what is lent to whoever has this job."""
    return of_epoch(given.kept_as, given.epoch)


def of_epoch(job: str, epoch: int) -> str:
    """Whoever gets the job next gets other keys."""
    return f"away {job} {epoch}"


def of_run(run: str, turn: int) -> str:
    """Each member that is asked for its answer gets other keys."""
    return f"spilled {run} {turn}"
