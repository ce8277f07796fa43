"""Managed volumes: who has which, within their quota; where their contents are is `places`' to know.

The row comes first, the place follows; removing takes the row away first. A size is what the volume is accounted with.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hansa import resources
from hansa.identity import Caller
from hansa.kernel import names, quantities
from hansa.kernel.clock import Clock
from hansa.kernel.errors import HansaError, NotFound
from hansa.storage.errors import NoDisk, VolumeAttached, VolumeExists, VolumeMissing, VolumeQuota
from hansa.storage.people import People
from hansa.storage.places import Place, Standing, VolumePlaces
from hansa.storage.records import Volume, VolumeRecords


@dataclass(frozen=True, slots=True)
class Attachment:
    service_name: str
    mount_path: str


@dataclass(frozen=True, slots=True)
class VolumeView:
    volume: Volume
    attachments: tuple[Attachment, ...]
    standing: Standing


class Volumes:
    def __init__(
        self,
        records: VolumeRecords,
        places: VolumePlaces,
        quotas: resources.Quotas,
        people: People,
        attached: Callable[[str, str], Sequence[Attachment]],
        clock: Clock,
        free_disk: Callable[[], int] = lambda: resources.NO_LIMIT,
    ) -> None:
        """`free_disk` is what all volumes together may still grow by."""
        self._records = records
        self._places = places
        self._quotas = quotas
        self._people = people
        self._attached = attached
        self._clock = clock
        self._free_disk = free_disk
        self._volumes: dict[tuple[str, str], Volume] = {}
        self._changing = asyncio.Lock()  # volumes are few and slow to change; one at a time keeps the sums right

    async def load(self) -> None:
        """Everything we know of, each with its place."""
        self._volumes = {(one.namespace, one.name): one for one in await self._records.all()}
        await self._places.load(list(self._volumes.values()))

    def place_of(self, namespace: str, name: str) -> Place:
        """What to mount, and the group that may write in it."""
        place = self._places.place(namespace, names.volume(name))
        volume = self._volumes.get((namespace, name))
        return replace(place, size=volume.size) if volume is not None else place

    def standing_of(self, namespace: str, name: str) -> Standing:
        if (namespace, name) not in self._volumes:
            return Standing("Lost", "there is no such volume any more", trouble=True)
        return self._places.standing(namespace, name)

    def used(self, uid: str) -> resources.Used:
        own = [volume.size for volume in self._volumes.values() if volume.owner == uid]
        return resources.Used(len(own), sum(own))

    @property
    def promised(self) -> int:
        """Bytes that all volumes may hold together."""
        return sum(volume.size for volume in self._volumes.values())

    # What users do, each in their own namespace.

    async def create(self, caller: Caller, name: str, size: str) -> VolumeView:
        namespace = (await self._people.ensure(caller)).namespace
        return self._view(await self._add(caller.uid, namespace, name, size, "", "retain"))

    async def listing(self, caller: Caller) -> list[VolumeView]:
        namespace = (await self._people.ensure(caller)).namespace
        found = [volume for volume in self._volumes.values() if volume.namespace == namespace]
        return [self._view(volume) for volume in sorted(found, key=lambda volume: volume.name)]

    async def get(self, caller: Caller, name: str) -> VolumeView:
        namespace = (await self._people.ensure(caller)).namespace
        return self._view(self._known(namespace, names.volume(name)))

    async def delete(self, caller: Caller, name: str) -> None:
        namespace = (await self._people.ensure(caller)).namespace
        async with self._changing:
            view = self._view(self._known(namespace, names.volume(name)))
            if view.attachments:
                users = ", ".join(one.service_name for one in view.attachments)
                raise VolumeAttached(f"volume {name} is attached to {users}", hint="delete these services first")
            await self._remove(view.volume)

    # What services do.

    async def for_service(
        self, caller: Caller, namespace: str, name: str, size: str, service: str, policy: str
    ) -> bool:
        """With a size the volume is made for the service (True); without one an existing volume is meant."""
        if size:
            await self._add(caller.uid, namespace, name, size, service, policy or "delete")
            return True
        if (namespace, names.volume(name)) not in self._volumes:
            raise VolumeMissing(
                f"there is no volume {name} in namespace {namespace}",
                hint="create it first, or give a size so that it is made with the service",
            )
        return False

    async def release(self, namespace: str, name: str, service: str) -> None:
        """The service goes; so does what was made for it, unless it is to be retained or others use it."""
        async with self._changing:
            volume = self._volumes.get((namespace, name))
            if volume is None or (volume.created_by, volume.policy) != (service, "delete"):
                return
            if all(one.service_name == service for one in self._attached(namespace, name)):
                await self._remove(volume)

    async def drop(self, namespace: str, name: str) -> None:
        """Takes back what `for_service` just made."""
        async with self._changing:
            volume = self._volumes.get((namespace, name))
            if volume is not None and volume.created_by:
                await self._remove(volume)

    # Steps.

    async def _add(self, owner: str, namespace: str, name: str, size: str, service: str, policy: str) -> Volume:
        count = quantities.size(size, what="size")
        names.volume(namespace)
        names.volume(name)
        async with self._changing:
            if (namespace, name) in self._volumes:
                raise VolumeExists(f"a volume {name} exists already", hint="choose another name")
            self._check_quota(owner, count)
            if count > (free := self._free_disk()):
                show = quantities.show_size
                raise NoDisk(
                    f"a volume of {show(count)} does not fit: {show(max(0, free))} of disk are free here",
                    hint="choose a smaller size, or try again when less runs",
                )
            volume = Volume(namespace, name, owner, count, service, policy, self._clock.now())
            await self._records.add(volume)
            self._volumes[(namespace, name)] = volume
            try:
                await self._places.make(volume)
            except (OSError, HansaError):
                await self._remove(volume)
                raise
            return volume

    def _check_quota(self, owner: str, size: int) -> None:
        limits = self._quotas.enforced(owner)
        if size <= 0:
            raise VolumeQuota("a volume of no size is below every quota", hint="write for example 1Gi")
        if limits is None:
            return
        used = self.used(owner)
        show = resources.exact_size
        if size < limits.min_disk_per_volume or size > limits.max_disk_per_volume:
            raise VolumeQuota(
                f"the quota allows volumes of {show(limits.min_disk_per_volume)} to "
                f"{show(limits.max_disk_per_volume)}, not {show(size)}",
                hint="choose a size in between, or ask the cluster's admin",
            )
        if used.amount + 1 > limits.volumes:
            raise VolumeQuota(
                f"the quota of {limits.volumes} volumes is used up", hint="delete one, or ask the cluster's admin"
            )
        if used.size + size > limits.disk:
            raise VolumeQuota(
                f"the disk quota of {show(limits.disk)} has {show(limits.disk - used.size)} left, not {show(size)}",
                hint="delete a volume, or ask the cluster's admin",
            )

    async def _remove(self, volume: Volume) -> None:
        await self._records.remove(volume.namespace, volume.name)
        self._volumes.pop((volume.namespace, volume.name), None)
        await self._places.remove(volume.namespace, volume.name)

    def _known(self, namespace: str, name: str) -> Volume:
        volume = self._volumes.get((namespace, name))
        if volume is None:
            raise NotFound(f"there is no volume {name}", hint="list your volumes with GET /system/volumes")
        return volume

    def _view(self, volume: Volume) -> VolumeView:
        attached = tuple(self._attached(volume.namespace, volume.name))
        return VolumeView(volume, attached, self._places.standing(volume.namespace, volume.name))
