"""May its owner have one more exposed service, or a larger one? What stays for long has to fit into a quota together.

Decided when somebody asks, one change of an owner at a time, so that two that come together do not both pass.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import reduce

from hansa import resources
from hansa.resources import Needs
from hansa.services import validation
from hansa.services.errors import ASK_FOR_MORE, BeyondQuota
from hansa.services.room import Room
from hansa.services.service import Service

_NOTHING = Needs(0, 0)


def needs_of(service: Service) -> Needs:
    """What all its instances hold at its minimum scale; nothing if it is not exposed."""
    if not service.exposed:
        return _NOTHING
    cpu, memory = validation.needs(service)
    return Needs(cpu, memory, owner=service.owner).times(max(1, service.expose.min_scale))


@asynccontextmanager
async def within_quota(room: Room, service: Service) -> AsyncIterator[None]:
    """Whoever writes the service down does it in here. Raises `BeyondQuota`."""
    if not service.exposed:
        yield
        return
    async with room.changing(f"exposed by {service.owner}"):
        check(room, service)
        yield


def check(room: Room, service: Service) -> None:
    """Raises `BeyondQuota` unless it fits beside the other exposed services of its owner, or asks for no more than it
    has already: who has too much since their quota is smaller may always have less."""
    needs, former = needs_of(service), room.records.get(service.name)
    if former is not None and not former.stopped and needs.fits_into(needs_of(former.service)):
        return
    others = reduce(Needs.plus, _others(room, service), _NOTHING)
    share = room.share_of(service.owner)
    why = resources.beyond_share(needs, share) or resources.beyond_rest(needs, others, share)
    if why:
        count = max(1, service.expose.min_scale)
        each = f" with {count} instances" if count > 1 else ""
        raise BeyondQuota(f"service {service.name} cannot be exposed{each}: {why}", hint=ASK_FOR_MORE)


def _others(room: Room, service: Service) -> list[Needs]:
    return [
        needs_of(record.service)
        for record in room.records.all()
        if record.service.owner == service.owner
        and record.service.name != service.name
        and record.phase != "deleting"
        and not record.stopped
    ]
