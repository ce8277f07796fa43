"""The other end: a replica that another cluster keeps here. Who shows its key, or its token, may do what?"""

from hansa.identity import Caller, same_secret
from hansa.kernel import errors, names
from hansa.services import secret_parts
from hansa.services.errors import BadService
from hansa.services.ports import Record
from hansa.services.replicas import topology
from hansa.services.room import Room
from hansa.services.service import ORIGIN_CLUSTER, ORIGIN_SERVICE, Service

_LENGTH = 64


class KeyRefused(errors.Unauthenticated):
    """There is no such replica, or it has another key or token."""

    code = "federation.key-refused"


def by_key(room: Room, name: str, key: str) -> Caller:
    """A coordinator acts for the owner of its replica, on that replica alone. Others learn nothing."""
    record = _replica(room, name)
    secrets = room.records.secrets(name) if record is not None else {}
    expected = secrets.get(secret_parts.path_of(secret_parts.REPLICA_KEY), "")
    if record is None or len(expected) != _LENGTH or not same_secret(key, expected):
        raise KeyRefused("this key opens no replica here", hint="update the federation at its coordinator")
    return _owner(record)


def by_token(room: Room, name: str, token: str) -> Caller:
    """Whoever gives jobs to this replica, or to this coordinator, may ask how it fares."""
    record = _known(room, name)
    if record is None or giver_of(room, record, token) is None:
        raise KeyRefused("this token opens no service here", hint="update the federation at its coordinator")
    return _owner(record)


def giver_of(room: Room, record: Record, token: str) -> str | None:
    """Whose token this is: "" if the service's own, else the key of the member that gives it jobs; None if nobody's."""
    service = record.service
    found = "" if same_secret(token, service.token) and service.token else None
    if service.is_worker:
        known = secret_parts.tokens_in(room.records.secrets(service.name), secret_parts.GIVER_TOKENS)
    elif service.federation is not None and service.federation.topology == "mesh":
        own = topology.key_of(service)
        members = topology.oscar_members(service.federation)
        known = {member.key: room.member_keys.token(service, own, member.key) for member in members}
    else:
        known = {}
    for giver, expected in known.items():
        if same_secret(token, expected) and len(expected) == _LENGTH:
            found = giver
    return found


def check_change(room: Room, name: str, definition: Service) -> None:
    """What a coordinator sends must still be the replica whose key it has."""
    record = _replica(room, name)
    before = record.service.annotations if record is not None else {}
    same = [definition.annotations.get(mark) == before.get(mark) for mark in (ORIGIN_CLUSTER, ORIGIN_SERVICE)]
    if definition.name != name or not definition.is_worker or not all(same):
        raise BadService("a coordinator may change its own replica only", hint="keep its name and its annotations")


def _known(room: Room, name: str) -> Record | None:
    names.service(name)
    record = room.records.get(name)
    return record if record is not None and record.phase == "ready" else None


def _replica(room: Room, name: str) -> Record | None:
    record = _known(room, name)
    return record if record is not None and record.service.is_worker else None


def _owner(record: Record) -> Caller:
    service = record.service
    return Caller(kind="user", uid=service.owner, name=service.labels.get("owner_name", ""))
