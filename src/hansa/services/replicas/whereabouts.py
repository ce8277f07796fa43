"""Where are the members that a service's owner meant? Where they were when the owner last wrote the service.

A hub tells where clusters are, and may be taken over. So a new address that it alone tells is good for going on: jobs
are handed over and replicas looked at, with what is good for that replica only. Credentials of people, and definitions,
which have secrets in them, go there once the owner has written the service again, or our operator names the address.
"""

from collections.abc import Mapping

from hansa.kernel import errors
from hansa.kernel.errors import HansaError
from hansa.services.peers import Peer
from hansa.services.replicas import topology
from hansa.services.room import Room
from hansa.services.service import Service


class Moved(errors.Conflict):
    """A member is at another address than when its service was last written, and only the hub says so."""

    code = "federation.moved"


def noted(room: Room, service: Service, before: Mapping[str, str], *, by_owner: bool) -> dict[str, str]:
    """By cluster, for a service that is written now. What somebody else than its owner writes consents to nothing: what
    was known `before` stays, and so it does for one that is out of the federation just now."""
    found: dict[str, str] = {}
    for cluster in {member.cluster_id for member in topology.oscar_members(service.federation)}:
        now = _endpoint(room, service, cluster) or before.get(cluster, "")
        if endpoint := now if by_owner else before.get(cluster, now):
            found[cluster] = endpoint
    return found


def _endpoint(room: Room, service: Service, cluster: str) -> str:
    named = service.clusters.get(cluster)
    try:
        return room.peers.find(cluster, named.endpoint if named else "").address.endpoint
    except HansaError:
        return ""


def moved(room: Room, service: Service, peer: Peer) -> str:
    """Why this is not where the owner meant the member to be, or "". A service that was written before addresses were
    noted knows nothing of it."""
    address = peer.address
    record = room.records.get(service.name) if address.by_hub else None
    meant = record.endpoints.get(address.cluster_id, "") if record is not None else ""
    if meant in ("", address.endpoint):
        return ""
    return (
        f"cluster {address.cluster_id} moved from {meant} to {address.endpoint}, and only the hub says so: no "
        "credentials of the service's owner and no definition are sent there until the owner updates the service"
    )


def require(room: Room, service: Service, peer: Peer) -> None:
    if why := moved(room, service, peer):
        raise refusal(why, peer.address.cluster_id)


def refusal(why: str, cluster: str) -> Moved:
    return Moved(
        why,
        hint=f"its owner agrees by updating the service; this manager's administrator by naming the address in the "
        f"setting federation.clusters.{cluster}",
    )
