"""What runs things for this manager: its own machine, or a Kubernetes cluster. Everything else sees one `Engines`."""

import dataclasses
import hashlib
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hansa import resources, services
from hansa.drivers import local, s3
from hansa.drivers.runs.stores import OpenForeign
from hansa.resources import Needs
from hansa.settings import JobSettings, Settings


class Nodes(Protocol):
    """What the machines of this cluster have, and how busy they are; from memory."""

    name: str

    def adopt(self, jobs: JobSettings) -> None: ...
    def whole(self) -> Needs: ...
    def largest(self) -> Needs | None: ...
    def capacity(self) -> Needs: ...
    def capacity_with(self, jobs: JobSettings) -> Needs: ...
    def look(self) -> Sequence[resources.Node]: ...


async def _nothing() -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    nodes: Nodes
    logs: services.JobLogs
    jobs: services.JobHost
    sync: services.SyncHost
    exposed: services.ExposedHost
    runtime: str
    isolation: Mapping[str, Any]
    """How well jobs are kept apart."""
    how: Callable[[services.Service], str]
    """How the jobs of a service run, in words."""
    present: Callable[[], Awaitable[Sequence[str]]]
    """Jobs of which something is there."""
    attempts: int
    """How often a job is started again after we died under it."""
    check: Callable[[], Awaitable[None]] = _nothing
    """Raises if what runs things does not answer."""
    watch: Callable[[Callable[[], None]], Awaitable[None]] | None = None
    """Looks again and again what the nodes have, and tells after each look. None where that does not change."""
    version: str = ""
    """Of what runs things, where it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What an engine is built on."""

    given: Settings
    data: Path
    open_store: s3.OpenStore
    open_foreign: OpenForeign
    keys_of: Callable[[str, str], Awaitable[Mapping[str, str]]]
    """Address and keys of our own store for a service and its owner, as a pod gets them."""
    parts: AsyncExitStack


async def open_nodes(ground: Ground, promised: Callable[[], Needs]) -> Nodes:
    """First of all: how much may be promised is known before anything is started."""
    if ground.given.driver == "kubernetes":
        from hansa.bootstrap import on_kubernetes  # noqa: PLC0415 - a large library that a machine alone does without

        return await on_kubernetes.open_nodes(ground)
    return local.LocalNode(socket.gethostname(), ground.given.jobs, promised=promised)


async def open_engines(ground: Ground, admission: resources.Admission, nodes: Nodes) -> Engines:
    if ground.given.driver == "kubernetes":
        from hansa.bootstrap import on_kubernetes  # noqa: PLC0415

        return await on_kubernetes.open_engines(ground, nodes)
    return await _on_this_machine(ground, admission, nodes)


async def _on_this_machine(ground: Ground, admission: resources.Admission, nodes: Nodes) -> Engines:
    given, data, parts = ground.given, ground.data, ground.parts
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
    sync_host = local.LocalSyncHost(engine, admission)
    parts.push_async_callback(sync_host.close)
    exposed_host = local.LocalExposedHost(engine, admission)
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
