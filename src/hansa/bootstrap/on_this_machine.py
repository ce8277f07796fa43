"""Puts the driver of this machine together: the sandbox, what it can carry, and the three hosts."""

import dataclasses
import hashlib
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from hansa import resources, services, storage
from hansa.bootstrap.engines import Engines, Ground, Nodes
from hansa.drivers import local
from hansa.resources import Needs
from hansa.settings import Settings


class OnThisMachine:
    """Namespaces are names here, and services are in our database alone."""

    claim = staticmethod(storage.granted)

    def __init__(self, given: Settings, data: Path, parts: AsyncExitStack) -> None:
        self._given = given
        self._data = data
        self._parts = parts

    async def prepare(self, data: Path) -> None:
        return

    def records(self, inner: services.Services) -> services.Services:
        return inner

    def places(self) -> storage.Folders:
        return storage.Folders(self._data / "volumes", gid=self._given.sandbox.uid_base if os.geteuid() == 0 else None)

    async def load(self, people: storage.People, quotas: resources.Quotas) -> None:
        return

    async def nodes(self, promised: Callable[[], Needs]) -> local.LocalNode:
        return local.LocalNode(socket.gethostname(), self._given.jobs, promised=promised)

    async def engines(self, ground: Ground, nodes: Nodes) -> Engines:
        given, data, parts = self._given, self._data, self._parts
        runtime, level = await _open_runtime(given, data, parts)
        engine = local.Engine(
            runtime=runtime,
            store=ground.open_store.store,
            open_foreign=ground.open_foreign,
            work=data / "work",
            node=nodes.name,
            network=given.sandbox.network,
            processes=given.sandbox.processes,
        )
        await engine.sweep()
        logs = local.LogBook(data / "logs", given.jobs.log_limit)
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
            isolation=dataclasses.asdict(level),
            how=_in_images if given.sandbox.runtime == "podman" else _in_our_userland,
            present=engine.present,
            attempts=given.jobs.attempts,
        )


def _in_images(service: services.Service) -> str:
    return f"jobs run in the image {service.image}"


def _in_our_userland(service: services.Service) -> str:
    return f"jobs run in this machine's own userland inside a sandbox; image {service.image} is not used"


async def _open_runtime(given: Settings, data: Path, parts: AsyncExitStack) -> tuple[local.Runtime, local.Level]:
    # several managers may share a machine, and one cluster's name may be used in two folders
    instance = f"{given.cluster.id[:24]}-{hashlib.sha256(str(data).encode()).hexdigest()[:8]}"
    where: dict[str, Any] = {"instance": instance, "uid_base": given.sandbox.uid_base, "run_dir": data / "run"}
    if given.sandbox.runtime == "podman":
        containers = await local.PodmanRuntime.open(**where)
        parts.push_async_callback(containers.close)
        return containers, await local.probe()
    runtime = await local.HostRuntime.open(**where)
    parts.push_async_callback(runtime.close)
    return runtime, runtime.level
