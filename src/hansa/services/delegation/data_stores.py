"""Where is the data of a job that runs for a federation, and with which keys? In the store of its origin.

Who asks shows what they have: the user's own token, the permit that came with the job, or what this cluster keeps.
"""

from collections.abc import Awaitable, Callable

from hansa.kernel import errors
from hansa.kernel.errors import HansaError
from hansa.services import replicas
from hansa.services.delegation.ledger import Parcel
from hansa.services.peers import Credentials, Peer
from hansa.services.room import Room
from hansa.services.service import ORIGIN_CLUSTER, Service
from hansa.storage import Keys, StoreAddress


class OriginUnreachable(errors.Conflict):
    """The job's inputs and outputs live in a store that cannot be reached from here."""

    code = "delegation.origin-unreachable"


async def of_parcel(room: Room, service: Service, parcel: Parcel) -> dict[str, str]:
    """For a job that another cluster hands us: with the user's token from the origin's configuration, else with the
    permit from whoever handed it over. Our own store needs no keys."""
    if _is_ours(room, service):
        return {}
    home = service.annotations.get(ORIGIN_CLUSTER, parcel.origin)
    if mine := _own_token(service, parcel.authorization):
        return await _asked(room, service, home, home, lambda peer: peer.storage_keys(mine[0]))
    return await _asked(room, service, home, parcel.origin, lambda peer: peer.origin_storage(parcel.job, parcel.permit))


async def of_worker(room: Room, service: Service, authorization: str) -> dict[str, str]:
    """For a job that was submitted here, to a worker: with the caller's token, else with what this cluster has for the
    origin. Our own store needs no keys."""
    home = service.annotations.get(ORIGIN_CLUSTER, "")
    if home in ("", room.cluster_id) or _is_ours(room, service):
        return {}
    known = [*_own_token(service, authorization), *await room.keyring.credentials(service, home)]
    if not known:
        raise OriginUnreachable(
            f"the data of service {service.name} is at {home}, and {room.cluster_id} has no credentials for it",
            hint=f"sign in with a token of your own, or submit the job at {home}",
        )
    return await _asked(room, service, home, home, lambda peer: replicas.as_somebody(known, peer.storage_keys))


def _is_ours(room: Room, service: Service) -> bool:
    default = service.storage_providers.get("minio", {}).get("default", {})
    return default.get("endpoint") in (None, "", room.store.address.endpoint)


def _own_token(service: Service, authorization: str) -> list[Credentials]:
    """The caller's, unless they came with the service's."""
    scheme, _, token = authorization.partition(" ")
    return [Credentials(authorization)] if scheme.lower() == "bearer" and token != service.token else []


async def _asked(
    room: Room,
    service: Service,
    home: str,
    whom: str,
    ask: Callable[[Peer], Awaitable[tuple[StoreAddress, Keys]]],
) -> dict[str, str]:
    named = service.clusters.get(whom)
    try:
        address, keys = await ask(room.peers.find(whom, named.endpoint if named else ""))
    except HansaError as error:
        raise OriginUnreachable(
            f"the store of {home} cannot be used from {room.cluster_id}: {error.message}",
            hint="its manager and its object store must be reachable from here",
        ) from error
    store = address.with_keys(keys)
    try:
        await room.check_store(store)
    except HansaError as error:
        raise OriginUnreachable(
            f"the object store of {home} cannot be reached from {room.cluster_id}: {error.message}",
            hint="set storage.public_endpoint of the origin to an address its members can reach",
        ) from error
    return store
