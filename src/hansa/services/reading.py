"""Which services does a caller see? Basic sees all; users by visibility. Jobs and logs follow the same rule."""

from hansa.identity import Caller, access
from hansa.kernel import names
from hansa.services.errors import ServiceNotFound
from hansa.services.ports import Record
from hansa.services.room import Room


def get(room: Room, caller: Caller, name: str) -> Record:
    """The service, if the caller may see it: 403 for somebody else's, 404 for none."""
    names.service(name)
    record = room.records.get(name)
    if record is None or record.phase != "ready":
        raise ServiceNotFound(f"there is no service {name}", hint="`hansa service ls` lists what you can see")
    service = record.service
    access.require_visible(
        caller,
        f"service {name}",
        owner=service.owner,
        visibility=service.visibility,
        allowed=service.allowed_users,
    )
    return record


def exposed(room: Room, name: str) -> Record:
    """The service, if its own process can be visited here; who may is asked elsewhere."""
    record = room.records.get(name)
    if record is None or record.phase != "ready" or not record.service.exposed:
        raise ServiceNotFound(f"there is no exposed service {name[:60]!r}")
    return record


async def settled(room: Room, name: str) -> None:
    """Returns when nobody is changing this service."""
    names.service(name)
    async with room.changing(name):
        pass


def owned(room: Room, caller: Caller, name: str, *, instead: str = "") -> Record:
    """The service, if the caller may change it. `instead` is what else they can do if they may not."""
    record = get(room, caller, name)
    access.require_change(caller, f"service {name}", owner=record.service.owner, instead=instead)
    return record


def all_visible(room: Room, caller: Caller) -> list[Record]:
    return [record for record in room.records.all() if record.phase == "ready" and visible(caller, record)]


def visible(caller: Caller, record: Record) -> bool:
    service = record.service
    return access.may_see(caller, owner=service.owner, visibility=service.visibility, allowed=service.allowed_users)


def has_full_view(caller: Caller, record: Record) -> bool:
    """Whether the service's own token and store keys may be shown."""
    return access.may_change(caller, record.service.owner)
