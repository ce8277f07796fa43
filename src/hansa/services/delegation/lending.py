"""With which keys does another cluster reach the data of a job that it runs for us? With ones lent for that job alone.

They open its inputs and its outputs in our store, and end when the job does, or when it is taken from that cluster.
"""

from hansa.services import orders
from hansa.services.ports import Record
from hansa.services.room import Room
from hansa.storage import NOTHING, Reach


async def lend(room: Room, name: str, record: Record, job: str, event: bytes, submitter: str) -> dict[str, str]:
    """Our store, with keys for what a run of this job may touch."""
    order = orders.make(room, record, job, event, submitter=submitter)
    return dict(await room.away_keys.lend(name, order))


async def reach_now(room: Room, job: str) -> Reach:
    """What a run of this job may touch in our store as things are. Raises `Forbidden`."""
    found = await room.jobs.get(job)
    record = room.records.get(found.service) if found is not None else None
    if found is None or record is None:
        return NOTHING
    return orders.make(room, record, job, found.event, submitter=found.owner).reach


async def end(room: Room, name: str) -> None:
    """A store that is away now ends them as soon as it is back; their job has lost its right to publish."""
    await room.away_keys.end(name)


def of_epoch(job: str, epoch: int) -> str:
    """Whoever gets the job next gets other keys."""
    return f"away {job} {epoch}"


def of_run(run: str) -> str:
    return f"spilled {run}"
