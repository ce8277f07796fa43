"""The federated part of a create, in the order the user sees it: may I, then everywhere, else nowhere."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass

from hansa.kernel.errors import HansaError
from hansa.services.errors import BadService
from hansa.services.peers import PeerRefused, PeerUnreachable, UntrustedCluster
from hansa.services.ports import Record
from hansa.services.replicas import expansion, showing, topology
from hansa.services.replicas.expansion import FederationFailed
from hansa.services.room import Room
from hansa.services.secret_parts import GROUP_KEY, REFRESH_TOKEN
from hansa.services.service import Service

_TOKEN = f"environment.secrets.{REFRESH_TOKEN}"
_KEY = f"environment.secrets.{GROUP_KEY}"


@dataclass(frozen=True, slots=True)
class Prepared:
    secrets: dict[str, str]  # with those the federation needs
    absent: frozenset[str]  # members that were seen to have no service of their worker's name
    notes: tuple[str, ...] = ()  # for the owner


def expands(service: Service) -> bool:
    """Whether this very service has replicas to make: a worker never expands again."""
    return not service.is_worker and bool(topology.oscar_members(service.federation))


async def prepare(
    room: Room, service: Service, secrets: Mapping[str, str], authorization: str, *, before: Service | None = None
) -> Prepared:
    """Checks all that can be checked before anything is changed; `before` is the definition that this one replaces."""
    topology.check(service)
    for member in topology.oscar_members(service.federation):
        expansion.peer_of(room, service, member.cluster_id)  # refuses clusters nobody told us to trust
    if not secrets.get(_TOKEN):
        lacking = [
            member.key
            for member in topology.oscar_members(service.federation)
            if not secrets.get(f"clusters.{member.cluster_id}.auth_password")
        ]
        if lacking:
            raise BadService(
                "a federation needs environment.secrets.refresh_token",
                hint="or auth_user and auth_password in clusters for: " + ", ".join(lacking),
            )
    notes = await risks(room, service, secrets)
    absent = await expansion.probe(room, service, secrets, authorization) if before is None else frozenset()
    return Prepared(without_group_key(secrets), absent, notes)


async def risks(room: Room, service: Service, secrets: Mapping[str, str]) -> tuple[str, ...]:
    """What the owner should know of what members are given; refuses what the operator does not allow. A member that is
    away, or not trusted, tells nothing now, and is judged before it is given anything."""
    federation = service.federation
    given = federation is not None and federation.topology == "mesh" and bool(secrets.get(_TOKEN))
    notes: list[str] = []
    keyless: set[str] = set()
    for member in topology.oscar_members(federation):
        with contextlib.suppress(PeerUnreachable, PeerRefused, UntrustedCluster):
            peer = expansion.peer_of(room, service, member.cluster_id)
            if await showing.way(room, peer) == "token":
                keyless.add(member.key)
                if given:
                    notes.append(showing.risk_of_refresh_token(room, peer))
    return (*notes, *map(showing.too_far, topology.without_jobs(service, keyless)))


def without_group_key(secrets: Mapping[str, str]) -> dict[str, str]:
    """An earlier release told members of a mesh a key with which they got access tokens of the owner. It opens nothing
    any more once the service is written again."""
    return {path: text for path, text in secrets.items() if path != _KEY}


async def deploy(room: Room, record: Record, authorization: str, absent: frozenset[str] = frozenset()) -> str:
    """All replicas in place: returns the operation to commit. Otherwise everything is taken back first."""
    operation = await expansion.begin(room, record, authorization)
    try:
        return (await expansion.apply(room, record, operation, authorization, absent)).id
    except BaseException as error:
        current = await room.operations.get(operation.id) or operation
        after = await expansion.undo(room, current)
        if not isinstance(error, HansaError):
            raise
        left = [f"{one.key}: {one.error}" for one in after.plan if not one.undone]
        if left:
            text = f"Federation failed: {error.message}; rollback errors: {'; '.join(left)}"
            hint = f"the rollback goes on by itself; see /v1/operations/{operation.id}"
        else:
            text, hint = f"Federation failed; rollback completed: {error.message}", error.hint
        raise FederationFailed(text, hint=hint, operation=operation.id) from error
