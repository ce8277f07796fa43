"""Where is the data of a job that runs for a federation, and with which keys? In the store of its origin.

Who asks shows what they have: the user's own token, the permit that came with the job, or what this cluster keeps.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hansa.kernel import errors
from hansa.kernel.errors import HansaError
from hansa.services import calling_out, events, replicas
from hansa.services.delegation import adopting
from hansa.services.delegation.ledger import Parcel, Receipt
from hansa.services.peers import Credentials, Peer
from hansa.services.room import Room
from hansa.services.service import ORIGIN_CLUSTER, Service
from hansa.storage import Reach


class OriginUnreachable(errors.Conflict):
    """The job's inputs and outputs live in a store that cannot be reached from here."""

    code = "delegation.origin-unreachable"


def has_files(service: Service, body: bytes) -> bool:
    """What needs no files runs without any store, and when its origin is away."""
    return bool(service.output or service.mount.path) or isinstance(events.interpret(body), events.ObjectInput)


async def of_parcel(room: Room, service: Service, parcel: Parcel, body: bytes) -> dict[str, str]:
    """For a job that another cluster hands us: with its permit, from whoever handed it over."""
    if not has_files(service, body):
        return {}
    home = service.annotations.get(ORIGIN_CLUSTER, parcel.origin)
    return await _asked(room, service, home, parcel.origin, lambda peer: peer.origin_storage(parcel.job, parcel.permit))


@dataclass(frozen=True, slots=True)
class Found:
    """The store of a job's data, with keys; and a permit if the origin took note of the job."""

    store: dict[str, str] = field(default_factory=dict, repr=False)
    permit: str = field(default="", repr=False)


async def of_worker(room: Room, service: Service, job: str, body: bytes, authorization: str) -> Found:
    """For a job that was submitted here, to a worker: with the caller's token, else with what this cluster has for the
    origin. A service of our own needs no keys."""
    home = service.annotations.get(ORIGIN_CLUSTER, "")
    if home in ("", room.cluster_id) or not has_files(service, body):
        return Found()
    by_caller = _own_token(service, authorization)
    reads = isinstance(events.interpret(body), events.ObjectInput)  # by the caller's right; all else is by the owner's
    caller = by_caller[0].authorization if by_caller and reads else ""
    if adopting.key_of(room, service) and (not caller or await _adopts_for_callers(room, service, home)):
        permit = adopting.permit_for(room, service, job)
        store = await _asked(
            room, service, home, home, lambda peer: adopting.ask(room, service, peer, job, body, permit, caller)
        )
        return Found(store, permit)
    known = [*by_caller, *await room.keyring.credentials(service, home)]
    if not known:
        raise OriginUnreachable(
            f"the data of service {service.name} is at {home}, and {room.cluster_id} has no credentials for it",
            hint=f"sign in with a token of your own, or submit the job at {home}",
        )

    async def ask(peer: Peer) -> dict[str, str]:
        address, keys = await replicas.as_somebody(known, peer.storage_keys)
        return address.with_keys(keys)

    return Found(await _asked(room, service, home, home, ask))


async def receipt_of_worker(room: Room, service: Service, job: str, body: bytes, authorization: str) -> Receipt | None:
    """For a job that was submitted here and whose data is elsewhere: where, with keys. None for all others."""
    found = await of_worker(room, service, job, body, authorization)
    if not found.store:
        return None
    origin, endpoint = room.cluster_id, room.own_endpoint
    if found.permit:
        origin = service.annotations.get(ORIGIN_CLUSTER, "")
        named = service.clusters.get(origin)
        endpoint = room.peers.find(origin, named.endpoint if named else "").address.endpoint
    return Receipt(job, service.name, origin, endpoint, (), found.permit, found.store, room.clock.now())


async def _adopts_for_callers(room: Room, service: Service, home: str) -> bool:
    """Otherwise their store keys are asked for, which older coordinators give."""
    try:
        return adopting.ONWARD_KEYS in await replicas.peer_of(room, service, home).capabilities()
    except HansaError:
        return False  # who asks for the keys is told why it cannot be reached


def _own_token(service: Service, authorization: str) -> list[Credentials]:
    """The caller's, unless they came with the service's."""
    scheme, _, token = authorization.partition(" ")
    return [Credentials(authorization)] if scheme.lower() == "bearer" and token != service.token else []


async def _asked(
    room: Room,
    service: Service,
    home: str,
    whom: str,
    ask: Callable[[Peer], Awaitable[dict[str, str]]],
) -> dict[str, str]:
    named = service.clusters.get(whom)
    try:
        peer = room.peers.find(whom, named.endpoint if named else "")
        store = await ask(peer)
    except HansaError as error:
        raise OriginUnreachable(
            f"the store of {home} cannot be used from {room.cluster_id}: {error.message}",
            hint="its manager and its object store must be reachable from here",
        ) from error
    if not store["access_key"]:
        return _shared(room, home, peer, store)
    try:
        tellers = (peer.address.endpoint, room.peers.endpoint_of(home))
        await room.check_store(store, calling_out.told_by(store["endpoint"], tellers))
    except HansaError as error:
        raise OriginUnreachable(
            f"the object store of {home} cannot be reached from {room.cluster_id}: {error.message}",
            hint="set storage.public_endpoint of the origin to an address its members can reach",
        ) from error
    return store


def _shared(room: Room, home: str, peer: Peer, store: dict[str, str]) -> dict[str, str]:
    """Two clusters with one store that lends no keys. What the other one says of a job's reach is believed where our
    operator says that it has the same administrator's keys, and nowhere else: the store is ours, too."""
    if store["endpoint"] != room.store.address.endpoint or not peer.address.shares_store:
        raise OriginUnreachable(
            f"the object store of {home} lends no keys to other clusters",
            hint="give the origin the embedded store or MinIO; if both clusters have the same store, this manager's "
            f"administrator can say so with federation.clusters.{peer.address.cluster_id}.shares_store",
        )
    try:
        Reach.from_text(store["reach"])
    except ValueError as error:
        raise OriginUnreachable(f"{home} does not say what the job may touch in the store") from error
    return store
