"""Does this cluster take jobs of other clusters, and does it start what it has? The hub may ask it not to.

Cordoned, it refuses what others hand over, so that they try elsewhere; its own users notice nothing. Draining, it also
gives back the jobs of others that still wait here, and offers its own to their members before it starts them. What runs
finishes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from hansa.kernel import errors
from hansa.services import replicas
from hansa.services.delegation.ledger import GIVEN_BACK
from hansa.services.job import Job, Status
from hansa.services.ports import Waiting
from hansa.services.room import Room

_log = structlog.get_logger("hansa.delegation")


class NotTaking(errors.Conflict):
    """This cluster takes no jobs of other clusters now."""

    code = "delegation.not-taking"


@dataclass(frozen=True, slots=True)
class Workload:
    """What a cluster that drains still waits for."""

    running: int  # here, and ours at members; not what was submitted to them
    waiting: int


def require_open(room: Room, present: Job | None = None) -> None:
    """Raises `NotTaking` unless others may hand us jobs, or this one is here already."""
    if not room.duty.cordoned or (present is not None and present.status in (Status.PENDING, Status.RUNNING)):
        return
    why = "is being drained" if room.duty.draining else "is cordoned"
    raise NotTaking(f"{room.cluster_id} {why} and takes no jobs of other clusters", hint="try another member")


def require_staying(room: Room) -> None:
    """Raises `NotTaking` where a member asks for keys to data that may soon be out of reach. A cluster that is only
    cordoned stays."""
    if room.duty.draining:
        raise NotTaking(f"{room.cluster_id} is being drained and lends no keys for jobs of others", hint="try later")


def may_start(room: Room, waiting: Waiting, in_vain: Callable[[str], bool]) -> bool:
    """Whether a job that waits may begin here. One of our own that members could run begins only if they did not take
    it (`in_vain`): it is better off here than nowhere. So is one that our engine had no room for."""
    turned_away = waiting.name in room.dispatcher.turned_away
    if not room.duty.draining and not turned_away:
        return True
    if room.duty.draining and _is_of_another(room, waiting.name):
        return False
    record = room.records.get(waiting.service)
    return record is None or not replicas.own_targets(record.service) or in_vain(waiting.name)


async def give_back(room: Room) -> int:
    """Jobs of other clusters that wait here: their origins find them gone, and run them elsewhere."""
    count = 0
    for waiting in room.dispatcher.pending():
        if not _is_of_another(room, waiting.name):
            continue
        with room.dispatcher.held_back(waiting.name) as ours:
            if not ours:
                continue  # it has just started
            # in this order: an origin that asks in between is told that it is not here (`receiving.state`)
            await room.dispatcher.end([waiting.name], GIVEN_BACK)
            await room.receipts.remove(waiting.name)
            count += 1
        _log.info("given back", job=waiting.name)
    return count


def _is_of_another(room: Room, job: str) -> bool:
    receipt = room.receipts.get(job)
    return receipt is not None and not receipt.ours


async def workload(room: Room) -> Workload:
    """Not what members have of their own: they could keep us from draining."""
    away = sum(not one.adopted for one in await room.delegations.active())
    return Workload(room.dispatcher.running + away, room.dispatcher.waiting)
