"""What do we show to a member, so that it can do its part and nothing else?

A Hansa gets what is good at that replica only (`keys`): its token for jobs and for how it fares, its key for the
definition. The owner's own access token goes there only to make a replica, or to make one anew that the member does not
know any more. OSCAR's own manager knows neither: its way is the owner's access token, for every job.

Which of the two a member is, it tells itself, and may tell another thing each time. So whoever does something with it
asks once (`way`, `judged`), and goes by that answer to the end: what is put into its definition, what is shown with it,
how its jobs are followed. A Hansa is a whole one, with all that a Hansa needs, or gets nothing; and one that had keys
once is never believed that it is an OSCAR now.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from hansa.kernel import errors
from hansa.kernel.errors import HansaError
from hansa.services import secret_parts
from hansa.services.operation import Touched
from hansa.services.peers import Credentials, Peer
from hansa.services.replicas import topology, whereabouts
from hansa.services.room import Room
from hansa.services.secret_parts import REPLICA_KEYS
from hansa.services.service import Member, Service

Way = Literal["key", "token"]  # by keys of its own and by permits, or as OSCAR, by its owner's access token
PERMITS = "delegation-permits"  # the capability of a manager that is asked about a job with the permit of that job
NEEDED = frozenset({PERMITS, REPLICA_KEYS})
_KEPT = "key of "


class NotItself(errors.Conflict):
    """A member that is known to be a Hansa does not answer as one."""

    code = "federation.not-itself"


class OnlyByCoordinator(errors.Forbidden):
    """Only the coordinator of a federation hands jobs to a member that has to be shown a person's token."""

    code = "federation.only-by-coordinator"


class OscarForbidden(errors.Forbidden):
    """Members that have to be shown the owner's access token are not allowed here."""

    code = "federation.oscar-forbidden"


async def way(room: Room, peer: Peer) -> Way:
    """How this member is asked, for all that is done with it now. Raises if it gets nothing."""
    address, names = peer.address, await peer.capabilities()
    if names >= NEEDED:
        await room.key_holders.add(address.cluster_id)
        return "key"
    if address.kind != "oscar" and (names or _is_known_hansa(room, peer)):
        peer.doubt()
        raise NotItself(
            f"cluster {address.cluster_id} is a Hansa and does not answer as one of this version: it does not name "
            + ", ".join(sorted(NEEDED - names)),
            hint="it gets nothing until it is a Hansa of this version; if it is another manager now, its own word is "
            f'not enough: set federation.clusters.{address.cluster_id}.kind = "oscar" here',
        )
    if not room.limits.oscar_members:
        raise OscarForbidden(
            f"cluster {address.cluster_id} takes no keys of its own (an OSCAR, or an older Hansa), and would have to "
            "be shown the owner's access token",
            hint="the setting federation.oscar_members allows it",
        )
    return "token"


def _is_known_hansa(room: Room, peer: Peer) -> bool:
    """By our operator's word, the hub's, or our own memory."""
    return peer.address.kind == "hansa" or room.key_holders.known(peer.address.cluster_id)


@dataclass(frozen=True, slots=True)
class Judged:
    """The members of a service, each asked once."""

    ways: Mapping[str, Way]
    troubles: Mapping[str, str]  # those that get nothing, and why

    @property
    def keyless(self) -> frozenset[str]:
        return frozenset(key for key, way in self.ways.items() if way == "token")


async def judged(room: Room, service: Service) -> Judged:
    ways: dict[str, Way] = {}
    troubles: dict[str, str] = {}

    async def judge(member: Member) -> None:
        named = service.clusters.get(member.cluster_id)
        try:
            ways[member.key] = await way(room, room.peers.find(member.cluster_id, named.endpoint if named else ""))
        except HansaError as error:
            troubles[member.key] = error.message

    await asyncio.gather(*(judge(member) for member in topology.oscar_members(service.federation)))
    return Judged(ways, troubles)


async def of_people(room: Room, service: Service, peer: Peer, caller: str = "") -> list[Credentials]:
    """What says who somebody is: for a member that has to be shown it, where the service's owner meant it to be."""
    whereabouts.require(room, service, peer)
    return await room.keyring.credentials(service, peer.address.cluster_id, caller=caller)


async def for_the_replica(
    room: Room, origin: Service, member: Member, peer: Peer, way: Way, caller: str = ""
) -> list[Credentials]:
    """To read or change a replica, best first; with the last ones it can be made."""
    by_key = only_key(room, origin, member, way)
    if not _may_show_token(room, by_key):
        return by_key
    return [*by_key, *await of_people(room, origin, peer, caller)]


def _may_show_token(room: Room, by_key: list[Credentials]) -> bool:
    """Whether somebody's own token may be shown: always where no key is taken; else only for a replica that the member
    says it does not know, and that may be a lie."""
    return room.limits.restore_replicas or not by_key


def only_key(room: Room, origin: Service, member: Member, way: Way) -> list[Credentials]:
    """The replica's key, for a coordinator; nothing where none is taken."""
    if origin.is_worker or way != "key":
        return []
    return [_by_key(room.member_keys.key(origin, member.key), member.service_name)]


def keys_to_keep(room: Room, origin: Service, members: Iterable[str]) -> dict[str, str]:
    """For an operation that may have to go on when the coordinator's service is gone."""
    return {f"{_KEPT}{member}": room.member_keys.key(origin, member) for member in members}


async def for_undoing(room: Room, kept: Mapping[str, str], touched: Touched, peer: Peer, way: Way) -> list[Credentials]:
    """To take back what an operation did, with what it kept for that."""
    key = kept.get(f"{_KEPT}{touched.key}", "")
    by_key = [_by_key(key, touched.service_name)] if key and way == "key" else []
    moved = touched.moved if peer.address.by_hub else ""
    if moved and not by_key:
        raise whereabouts.refusal(moved, touched.cluster_id)
    if moved or not _may_show_token(room, by_key):
        return by_key
    return [*by_key, *await room.keyring.from_kept(kept, touched.cluster_id)]


def _by_key(key: str, service: str) -> Credentials:
    return Credentials(f"ReplicaKey {key}", replica=service)


async def for_jobs(room: Room, service: Service, member: Member, peer: Peer, way: Way) -> list[Credentials]:
    """To hand a job over, and to ask how the member fares."""
    own = _token(room, service, member)
    # a coordinator of before, or an OSCAR, gave all its replicas the token it has itself
    token = own or service.token
    if way == "key":
        return [Credentials(f"Bearer {token}", replica=member.service_name)]
    people = await of_people(room, service, peer)
    if service.is_worker and own and not people:
        raise OnlyByCoordinator(
            f"only the coordinator hands jobs to {member.cluster_id}, which has to be shown a token of the owner",
            hint="submit at the coordinator what that cluster may run",
        )
    return [*people, Credentials(f"Bearer {token}")]


def _token(room: Room, service: Service, member: Member) -> str:
    if not service.is_worker:
        return room.member_keys.token(service, member.key)
    return secret_parts.tokens_in(room.records.secrets(service.name), secret_parts.MEMBER_TOKENS).get(member.key, "")


def check(room: Room, definition: Service, peer: Peer) -> None:
    """Refuses a refresh token to members that the operator gives none."""
    if definition.environment.secrets.get(secret_parts.REFRESH_TOKEN):
        risk_of_refresh_token(room, peer)


def risk_of_refresh_token(room: Room, peer: Peer) -> str:
    """What it means that this member, which takes no keys, is given a refresh token, in words for its owner. Refuses it
    where the operator does."""
    cluster = peer.address.cluster_id
    if not room.limits.oscar_refresh_tokens:
        raise OscarForbidden(
            f"cluster {cluster} is an OSCAR (or an older Hansa), which gets no refresh token from here",
            hint="use the topology star or tree, or ask the operator for federation.oscar_refresh_tokens",
        )
    return (
        f"cluster {cluster} gets the refresh token, and OSCAR hands it to every job of the service there: whoever can "
        "run code in one of them can act as you, in all clusters, until the token is revoked "
        "(`hansa federation token revoke`). The topologies star and tree give it to nobody."
    )


def too_far(member: Member) -> str:
    """That nobody gives this member jobs, in words for its owner."""
    return (
        f"cluster {member.cluster_id} gets no jobs: it is an OSCAR (or an older Hansa), to which only the coordinator "
        "hands jobs, and in this tree it is below another member. Leave out its parent, or use the topology star."
    )


def is_bearer(credentials: Credentials) -> bool:
    return credentials.authorization.lower().startswith("bearer ")
