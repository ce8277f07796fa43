"""From a service and an event to the order an engine carries out."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from hansa.kernel import quantities
from hansa.kernel.errors import Forbidden, Invalid
from hansa.services import bucket_owners, calling_out, reaching, secret_parts, validation
from hansa.services.ports import HOME, Record, RunOrder, VolumeMount
from hansa.services.room import Room
from hansa.services.service import ORIGIN_CLUSTER, Service
from hansa.storage import Reach

TIME_LIMIT = "hansa/time-limit"  # annotation: seconds, or 30s, 10m, 2h


def make(
    room: Room,
    record: Record,
    name: str,
    event: bytes,
    *,
    submitter: str | None = None,
    seconds: float | None = None,
    may_publish: Callable[[], Awaitable[bool]] | None = None,
    movable: bool = False,
    store: Mapping[str, str] | None = None,
) -> RunOrder:
    """`store` is where the data of a run for another cluster lives, with its keys. What the run may touch in our own
    follows from the rights of its `submitter` and of the service's owner; without one, nothing. Raises `Forbidden`."""
    service = record.service
    secrets = room.records.secrets(service.name)
    cpu, memory = validation.needs(service)
    with_keys = secret_parts.providers_with_keys(service, secrets)
    providers = {
        f"{kind}.{ident}": {key: str(value) for key, value in config.items()}
        for kind, by_id in with_keys.items()
        for ident, config in by_id.items()
    }
    receipt = room.receipts.of(name, service.name)
    home = store or (receipt.store if receipt is not None else None)
    if home and home["access_key"]:
        providers[HOME] = dict(home)  # a replica's data lives at its origin
    order = RunOrder(
        name=name,
        service=service,
        secrets=secret_parts.for_script(secrets),
        providers=providers,
        event=event,
        cpu=cpu,
        memory=memory,
        seconds=seconds if seconds is not None else time_limit(service, room.limits.time_limit),
        moving=room.limits.time_limit,
        disk=room.disk.of(service),
        mounts=_mounts(room, service),
        may_publish=may_publish,
        movable=movable,
        newest=_newest(room, name, service.name) if receipt is not None and not store else None,
        lent=frozenset({HOME}) if home else frozenset(),
        vouched=_vouched(room, service, home or {}, receipt.endpoint if receipt is not None else ""),
    )
    if submitter is None:
        return order
    order = replace(order, submitter=submitter)
    if home and not home["access_key"]:
        return replace(order, reach=Reach.from_text(home["reach"]))  # it is in our own store, and the origin's to say

    def changed_hands(bucket: str) -> bool:
        return bucket_owners.changed_hands(record, bucket, room.buckets.owner_of(bucket))

    reach = reaching.reach_of(order, submitter, room.buckets.may_use, room.buckets.is_full, changed_hands)
    if reach and _is_of_elsewhere(room, service):
        raise Forbidden(
            f"the data of service {service.name} is at its origin, and no keys to it came with this job",
            hint="its definition may have changed meanwhile; submit the job again",
        )
    return replace(order, reach=reach)


def _newest(room: Room, name: str, service: str) -> Callable[[], Mapping[str, str]]:
    def look() -> Mapping[str, str]:
        receipt = room.receipts.of(name, service)
        return receipt.store if receipt is not None else {}

    return look


def _is_of_elsewhere(room: Room, service: Service) -> bool:
    """Whoever may change a replica from afar may not use its owner's buckets here."""
    return service.annotations.get(ORIGIN_CLUSTER, room.cluster_id) not in ("", room.cluster_id)


def time_limit(service: Service, most: float) -> float:
    """What the service asked for, never more than the cluster allows."""
    text = service.annotations.get(TIME_LIMIT, "").strip().lower()
    if not text:
        return most
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1])
    try:
        asked = float(quantities.parse(text[:-1] if unit else text, what=TIME_LIMIT)) * (unit or 1)
    except Invalid:
        return most
    return min(most, asked) if asked > 0 else most


def _vouched(room: Room, service: Service, home: Mapping[str, str], sender: str) -> frozenset[str]:
    """Clusters we trust told us of `home` and of stores under their own ids, which is not a tenant's word: one that
    a tenant wrote was refused when the service came. Our own store may go by another name."""
    origin = room.peers.endpoint_of(service.annotations.get(ORIGIN_CLUSTER, ""))
    known = {HOME} if calling_out.told_by(home.get("endpoint", ""), (sender, origin)) else set()
    return frozenset(known | {f"minio.{ident}" for ident in calling_out.known_by_id(room, service)})


def _mounts(room: Room, service: Service) -> tuple[VolumeMount, ...]:
    if service.volume is None:
        return ()
    place = room.volumes.place_of(service.namespace, service.volume.name)
    return (VolumeMount(place.source, service.volume.mount_path, place.gid, place.one_node, place.size),)
