"""From a service and an event to the order an engine carries out."""

from collections.abc import Awaitable, Callable, Mapping

from hansa.kernel import quantities
from hansa.kernel.errors import Invalid
from hansa.services import secret_parts, validation
from hansa.services.ports import Record, RunOrder, VolumeMount
from hansa.services.room import Room
from hansa.services.service import Service

TIME_LIMIT = "hansa/time-limit"  # annotation: seconds, or 30s, 10m, 2h


def make(
    room: Room,
    record: Record,
    name: str,
    event: bytes,
    *,
    seconds: float | None = None,
    may_publish: Callable[[], Awaitable[bool]] | None = None,
    movable: bool = False,
    store: Mapping[str, str] | None = None,
) -> RunOrder:
    """`store` is where the data of a run for another cluster lives, with its keys."""
    service = record.service
    secrets = room.records.secrets(service.name)
    cpu, memory = validation.needs(service)
    with_keys = secret_parts.providers_with_keys(service, secrets)
    providers = {
        f"{kind}.{ident}": {key: str(value) for key, value in config.items()}
        for kind, by_id in with_keys.items()
        for ident, config in by_id.items()
    }
    receipt = room.receipts.get(name)
    home = store or (receipt.store if receipt is not None else None)
    if home:
        providers["minio.default"] = dict(home)  # a replica's data lives at its origin
    return RunOrder(
        name=name,
        service=service,
        secrets=secret_parts.for_script(secrets),
        providers=providers,
        event=event,
        cpu=cpu,
        memory=memory,
        seconds=seconds if seconds is not None else time_limit(service, room.limits.time_limit),
        mounts=_mounts(room, service),
        may_publish=may_publish,
        movable=movable,
    )


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


def _mounts(room: Room, service: Service) -> tuple[VolumeMount, ...]:
    if service.volume is None:
        return ()
    place = room.volumes.place_of(service.namespace, service.volume.name)
    return (VolumeMount(place.source, service.volume.mount_path, place.gid, place.one_node),)
