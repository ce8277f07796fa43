"""Puts the driver of this machine together: the sandbox, what it can carry, and the three hosts."""

import asyncio
import dataclasses
import functools
import hashlib
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import structlog

from hansa import resources, services, storage
from hansa.bootstrap import data_folder
from hansa.bootstrap.engines import Engines, Ground, Nodes
from hansa.drivers import egress, local, s3
from hansa.drivers.runs import removal
from hansa.kernel import disk_room, quantities
from hansa.resources import Needs
from hansa.settings import Settings

_log = structlog.get_logger(__name__)
_LOOK_EVERY = 5.0  # seconds
_PUBLISH_WAIT = 5.0


class OnThisMachine:
    """Namespaces are names here, and services are in our database alone."""

    claim = staticmethod(storage.granted)

    def __init__(self, given: Settings, data: Path, parts: AsyncExitStack) -> None:
        self._given = given
        self._data = data
        self._parts = parts
        self._no_images = local.no_images()
        self._disks: local.Disks | None = None
        gid = given.sandbox.uid_base if os.geteuid() == 0 else None
        self._places = local.VolumeImages(
            storage.Folders(data / "volumes", removal.remove, gid=gid), lambda: self._no_images, self._let_go
        )
        self._space = local.Space(data, given.jobs, self._places.taken)
        self._per_run = local.per_run(given.jobs, self._space.most)

    async def prepare(self, data: Path) -> None:
        return

    def records(self, inner: services.Services) -> services.Services:
        return inner

    def places(self) -> storage.VolumePlaces:
        return self._places

    def disk(self) -> int:
        return self._space.room(self._disks)

    def disk_most(self) -> int:
        return self._space.most

    def disk_per_run(self) -> int:
        return self._per_run

    def nodes_pull(self) -> services.NodesPull | None:
        return None

    async def load(self, people: storage.People, quotas: resources.Quotas) -> None:
        return

    async def nodes(self, promised: Callable[[], Needs]) -> local.LocalNode:
        return local.LocalNode(socket.gethostname(), self._given.jobs, promised=promised)

    async def engines(self, ground: Ground, nodes: Nodes) -> Engines:
        given, data, parts = self._given, self._data, self._parts
        runtime, level = await _open_runtime(given, data, ground.door, parts)
        data_folder.let_jobs_pass(data, walked=not runtime.images and level.walks)
        background = local.Background()
        parts.push_async_callback(background.finish)
        disks = self._disks = await self._open_disks(runtime, level)
        engine = local.Engine(
            runtime=runtime,
            own=self._own_store(ground.open_store, background),
            dial=ground.dial,
            work=data / "work",
            node=nodes.name,
            network=given.sandbox.network,
            processes=given.sandbox.processes,
            disks=disks,
        )
        await engine.sweep()
        logs = local.LogBook(data / "logs", given.jobs.log_limit, given.jobs.logs_per_owner)
        sync_host = local.LocalSyncHost(engine, ground.admission)
        parts.push_async_callback(sync_host.close)
        exposed_host = local.LocalExposedHost(engine, ground.admission)
        parts.push_async_callback(exposed_host.close)
        return Engines(
            nodes=nodes,
            logs=logs,
            jobs=local.LocalJobHost(engine, logs),
            sync=sync_host,
            exposed=exposed_host,
            runtime=given.sandbox.runtime,
            isolation=dataclasses.asdict(level) | {"disk": disks.kind},
            how=_in_images if given.sandbox.runtime == "podman" else _in_our_userland,
            present=engine.present,
            attempts=given.jobs.attempts,
            publish_wait=_PUBLISH_WAIT,
            loops={"room on the disk": functools.partial(_look_for_room, ground.admission)},
        )

    async def _open_disks(self, runtime: local.Runtime, level: local.Level) -> local.Disks:
        placed = runtime.images  # podman mounts folders that everybody sees
        if not self._no_images and not placed and level.uid != "per-job":
            self._no_images = "jobs have no user ids of their own"
        if why := self._no_images:
            _log.warning("disk limits are soft: a run that writes too much is ended some moments later", reason=why)
        if shortage := local.shortage(self._given.jobs, self._space.most):
            _log.warning("no job can ever begin: the disk is too small", reason=shortage)
        if (usual := quantities.size(self._given.jobs.disk_per_run, what="disk")) > self._per_run:
            has, instead = quantities.show_size(self._per_run), quantities.show_size(usual)
            _log.warning("the disk is small: each run has less of it than usual", disk=has, usual=instead)
        disks = await asyncio.to_thread(
            local.Disks.open, self._data / "work", hard=not why, size=self._per_run, placed=placed, why_soft=why
        )
        self._parts.callback(disks.close)
        return disks

    def _let_go(self, folder: Path) -> None:
        """Of the volume that runs saw there."""
        if self._disks is not None:
            self._disks.drop_volume(folder)

    def _own_store(self, opened: s3.OpenStore, background: local.Background) -> local.OwnStore:
        """As this machine reaches it, which may be another address than its clients' own."""
        known, reserve = opened.store.address, quantities.size(self._given.jobs.disk_reserve or "0", what="disk")

        def has_room() -> bool:
            return opened.closable is None or disk_room.free(self._data) >= reserve // 2

        return local.OwnStore(
            address=storage.StoreAddress(opened.store.reach_at, known.region, known.verify),
            root=opened.keys,
            later=background.start,
            has_room=has_room,
            loans=opened.loans,
        )


async def _look_for_room(admission: resources.Admission) -> None:
    """For ever: what waits for disk may begin when others than runs made room there, of which nobody tells."""
    while True:
        await asyncio.sleep(_LOOK_EVERY)
        if admission.ledger.lacked_disk:
            admission.ledger.lacked_disk = False
            admission.look_again()


def _in_images(service: services.Service) -> str:
    return f"jobs run in the image {service.image}"


def _in_our_userland(service: services.Service) -> str:
    return f"jobs run in this machine's own userland inside a sandbox; image {service.image} is not used"


async def _open_runtime(
    given: Settings, data: Path, door: egress.Door, parts: AsyncExitStack
) -> tuple[local.Runtime, local.Level]:
    # several managers may share a machine, and one cluster's name may be used in two folders
    instance = f"{given.cluster.id[:24]}-{hashlib.sha256(str(data).encode()).hexdigest()[:8]}"
    where: dict[str, Any] = {"instance": instance, "uid_base": given.sandbox.uid_base, "run_dir": data / "run"}
    if given.sandbox.runtime == "podman":
        containers = await local.PodmanRuntime.open(**where, way_out=egress.Proxy(door))
        parts.push_async_callback(containers.close)
        return containers, await local.probe()
    runtime = await local.HostRuntime.open(**where)
    parts.push_async_callback(runtime.close)
    return runtime, runtime.level
