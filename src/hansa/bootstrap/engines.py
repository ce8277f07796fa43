"""What runs things for this manager: its own machine (`on_this_machine`), or a Kubernetes cluster (`on_kubernetes`).

Everything else sees a `Driver` while the manager is built, and then its `Engines`.
"""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hansa import resources, services, storage
from hansa.drivers import egress, s3
from hansa.kernel.clock import Clock
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


async def _tell_nobody(_owner: str) -> None:
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
    publish_wait: float | None = None
    """See `Dispatcher`: seconds after which a run that waits for the right to publish holds nothing but its disk."""
    check: Callable[[], Awaitable[None]] = _nothing
    """Raises if what runs things does not answer."""
    watch: Callable[[Callable[[], None]], Awaitable[None]] | None = None
    """Looks again and again what the nodes have, and tells after each look. None where that does not change."""
    loops: Mapping[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)
    """What else goes on for as long as the manager runs."""
    quota_changed: Callable[[str], Awaitable[None]] = _tell_nobody
    """Hears whose quota is another now; "" stands for everybody."""
    drift: Callable[[], Sequence[Mapping[str, Any]]] = lambda: ()
    """What others did to what is ours there, the latest last."""
    version: str = ""
    """Of what runs things, where it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What engines are built on."""

    open_store: s3.OpenStore
    dial: Callable[[str, int, bool, str], Awaitable[socket.socket]]
    """Connects to a store on behalf of a run; True if its address is no tenant's word; for whom."""
    away_keys: services.AwayKeys
    """Address and keys of our own store for a run that is not on this machine."""
    admission: resources.Admission
    door: egress.Door
    """The way out for whatever tenants name."""


class Driver(Protocol):
    """Opened first of all; its parts are asked for in this order."""

    async def prepare(self, data: Path) -> None:
        """The folder, and what has to be the same in another place, are as they should be."""
        ...

    def records(self, inner: services.Services) -> services.Services:
        """Where services are remembered: in our database, and where else it should be."""
        ...

    @property
    def claim(self) -> storage.Claim:
        """Takes a namespace for a user where things run."""
        ...

    def places(self) -> storage.VolumePlaces: ...
    async def load(self, people: storage.People, quotas: resources.Quotas) -> None:
        """Our database is read, and so are people and quotas."""
        ...

    def disk(self) -> int:
        """Bytes of disk that runs and volumes may hold together, as it is now."""
        ...

    def disk_most(self) -> int:
        """What that can be at best."""
        ...

    def disk_per_run(self) -> int:
        """What each run has, unless its service asks for more."""
        ...

    def nodes_pull(self) -> services.NodesPull | None:
        """How images are fetched, if neither we nor a program of ours does."""
        ...

    async def nodes(self, promised: Callable[[], Needs]) -> Nodes: ...
    async def engines(self, ground: Ground, nodes: Nodes) -> Engines: ...


def open_driver(given: Settings, data: Path, clock: Clock, parts: AsyncExitStack) -> Driver:
    if given.driver == "kubernetes":
        from hansa.bootstrap.on_kubernetes import OnKubernetes  # noqa: PLC0415 - large, and a machine alone needs none

        return OnKubernetes(given, clock, parts)
    from hansa.bootstrap.on_this_machine import OnThisMachine  # noqa: PLC0415 - it is built of what stands here

    return OnThisMachine(given, data, parts)
