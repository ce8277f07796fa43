"""What do we show to a member, so that it can do its part and nothing else?

A Hansa gets what is good at that replica only (`keys`): its token for jobs and for how it fares, its key for the
definition. The owner's own access token goes there only to make a replica, or to make one anew that the member does not
know any more. OSCAR's own manager knows neither: its way is the owner's access token, for every job. Which of the two a
member is, it tells itself, so one that had keys once is never believed that it is an OSCAR now.
"""

import asyncio
from collections.abc import Iterable, Mapping

from hansa.kernel import errors
from hansa.services import secret_parts
from hansa.services.operation import Touched
from hansa.services.peers import Credentials, Peer, PeerUnreachable
from hansa.services.room import Room
from hansa.services.secret_parts import REPLICA_KEYS
from hansa.services.service import Member, Service

_KEPT = "key of "


class NotItself(errors.Conflict):
    """A member that is known to be a Hansa does not answer as one."""

    code = "federation.not-itself"


class OscarForbidden(errors.Forbidden):
    """Members that have to be shown the owner's access token are not allowed here."""

    code = "federation.oscar-forbidden"


async def has_keys(room: Room, peer: Peer) -> bool:
    """Whether this member takes keys of its own; False for one that OSCAR's way is allowed for."""
    address = peer.address
    if REPLICA_KEYS in await peer.capabilities():
        await room.key_holders.add(address.cluster_id)
        return True
    if address.kind == "hansa" or (address.kind != "oscar" and room.key_holders.known(address.cluster_id)):
        peer.doubt()
        raise NotItself(
            f"cluster {address.cluster_id} is a Hansa and does not answer as one that takes keys of its own",
            hint="it gets no token of a person until it is a Hansa of this version; if it is another manager now, its "
            f'own word is not enough: set federation.clusters.{address.cluster_id}.kind = "oscar" here',
        )
    if not room.limits.oscar_members:
        raise OscarForbidden(
            f"cluster {address.cluster_id} takes no keys of its own (an OSCAR, or an older Hansa), and would have to "
            "be shown the owner's access token",
            hint="the setting federation.oscar_members allows it",
        )
    return False


async def keyless(room: Room, service: Service) -> frozenset[str]:
    """The members that are seen to take no keys of their own."""
    members = [one for one in (service.federation.members if service.federation else ()) if one.type.lower() == "oscar"]

    async def is_keyless(member: Member) -> bool:
        named = service.clusters.get(member.cluster_id)
        try:
            return not await has_keys(room, room.peers.find(member.cluster_id, named.endpoint if named else ""))
        except PeerUnreachable:  # it is judged before it is given anything, and what it may be gives nobody a key
            return False
        except errors.HansaError:
            return False  # it gets nothing

    found = await asyncio.gather(*(is_keyless(member) for member in members))
    return frozenset(member.key for member, yes in zip(members, found, strict=True) if yes)


async def for_the_replica(
    room: Room, origin: Service, member: Member, peer: Peer, caller: str = ""
) -> list[Credentials]:
    """To read or change a replica, best first; with the last ones it can be made."""
    by_key = await only_key(room, origin, member, peer)
    if not may_show_token(room, by_key):
        return by_key
    return [*by_key, *await room.keyring.credentials(origin, member.cluster_id, caller=caller)]


def may_show_token(room: Room, by_key: list[Credentials]) -> bool:
    """Whether somebody's own token may be shown: always where no key is taken; else only for a replica that the member
    says it does not know, and that may be a lie."""
    return room.limits.restore_replicas or not by_key


async def only_key(room: Room, origin: Service, member: Member, peer: Peer) -> list[Credentials]:
    """The replica's key, for a coordinator; nothing where none is taken."""
    if origin.is_worker or not await has_keys(room, peer):
        return []
    return [_by_key(room.member_keys.key(origin, member.key), member.service_name)]


def keys_to_keep(room: Room, origin: Service, members: Iterable[str]) -> dict[str, str]:
    """For an operation that may have to go on when the coordinator's service is gone."""
    return {f"{_KEPT}{member}": room.member_keys.key(origin, member) for member in members}


async def kept_key(room: Room, kept: Mapping[str, str], touched: Touched, peer: Peer) -> list[Credentials]:
    key = kept.get(f"{_KEPT}{touched.key}", "")
    return [_by_key(key, touched.service_name)] if key and await has_keys(room, peer) else []


def _by_key(key: str, service: str) -> Credentials:
    return Credentials(f"ReplicaKey {key}", replica=service)


async def for_jobs(room: Room, service: Service, member: Member, peer: Peer) -> list[Credentials]:
    """To hand a job over, and to ask how the member fares."""
    token = _token(room, service, member)
    if token and await has_keys(room, peer):
        return [Credentials(f"Bearer {token}", replica=member.service_name)]
    known = await room.keyring.credentials(service, member.cluster_id)
    # a coordinator of before, or an OSCAR, gave all its replicas the token it has itself
    return [*known, Credentials(f"Bearer {token or service.token}")]


def _token(room: Room, service: Service, member: Member) -> str:
    if not service.is_worker:
        return room.member_keys.token(service, member.key)
    return secret_parts.tokens_in(room.records.secrets(service.name), secret_parts.MEMBER_TOKENS).get(member.key, "")


async def check(room: Room, definition: Service, peer: Peer) -> None:
    """Refuses what this member may not be given, before it is."""
    if definition.environment.secrets.get(secret_parts.REFRESH_TOKEN):
        await risk_of_refresh_token(room, peer)
    else:
        await has_keys(room, peer)


async def risk_of_refresh_token(room: Room, peer: Peer) -> str:
    """What it means that this member is given a refresh token, in words for its owner; "" if it needs none and gets
    none. Refuses it where the operator does."""
    if await has_keys(room, peer):
        return ""
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


def is_bearer(credentials: Credentials) -> bool:
    return credentials.authorization.lower().startswith("bearer ")
