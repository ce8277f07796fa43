"""What do the three hosts of this machine share? Runtime, stores, folders, and how an order becomes a launch.

`bootstrap` makes one `Engine` and gives it to `LocalJobHost`, `LocalSyncHost` and `LocalExposedHost`.
"""

import asyncio
import math
from dataclasses import dataclass
from pathlib import Path

from hansa import services
from hansa.drivers.local.launch import Bind, Launch, Network
from hansa.drivers.local.runtime import Process, Runtime
from hansa.drivers.local.workdir import Workdir
from hansa.drivers.runs import environment
from hansa.drivers.runs.environment import Places
from hansa.drivers.runs.staging import Say, Staging
from hansa.drivers.runs.stores import OpenForeign, OrderStores
from hansa.storage import ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How runs are made on this machine."""

    runtime: Runtime
    store: ObjectStore
    open_foreign: OpenForeign
    work: Path
    """Where the folders of runs are."""
    node: str
    """This machine's name, as scripts see it in RESOURCE_ID."""
    network: Network = "none"
    """What jobs and calls may reach."""
    processes: int = 256
    patience: float = 300.0
    """Seconds for which a store that does not answer is asked again."""

    def workdir(self, name: str, shelf: str = "") -> Workdir:
        """Jobs stand right in `work`; what does not outlive the manager is on a shelf, for `sweep` to clear."""
        root = self.work.absolute()
        return Workdir(root / f".{shelf}" if shelf else root, name)

    async def sweep(self) -> None:
        """Clears what calls and exposed services of a manager that died left; before any host starts."""
        for shelf in ("run", "exposed"):
            await asyncio.to_thread(self.workdir(f".{shelf}").remove)

    async def present(self) -> list[str]:
        """Jobs of which there is a folder."""
        folders = await asyncio.to_thread(lambda: list(self.work.iterdir()) if self.work.is_dir() else [])
        return [folder.name for folder in folders if not folder.name.startswith(".")]

    def places(self, workdir: Workdir) -> Places:
        return Places(
            job=self.runtime.inside(workdir.job, environment.JOB),
            config=self.runtime.inside(workdir.config, environment.CONFIG),
        )

    async def prepare(self, order: services.RunOrder, workdir: Workdir) -> None:
        """A fresh folder with the script in it."""
        definition = environment.definition_text(order.service)
        making = asyncio.create_task(
            asyncio.to_thread(workdir.create, order.service.script, definition), name=f"prepare {workdir.home.name}"
        )
        try:
            await asyncio.shield(making)
        finally:
            await asyncio.wait({making})  # a thread runs on when we are cancelled: who clears up must not meet it

    def stores(self, order: services.RunOrder) -> OrderStores:
        return OrderStores(self.store, self.open_foreign, order)

    def staging(self, order: services.RunOrder, workdir: Workdir, stores: OrderStores, say: Say) -> Staging:
        return Staging(order, workdir, stores, say, self.patience)

    async def write_call(self, order: services.RunOrder, workdir: Workdir, staging: Staging) -> None:
        """What this call is about, for the script's first shell to read."""
        variables = environment.call_variables(order, staging.given, self.places(workdir))
        name, text = environment.call_file(variables)
        await asyncio.to_thread((workdir.job / name).write_text, text)

    def launch(
        self,
        order: services.RunOrder,
        workdir: Workdir,
        *,
        id: str,
        argv: tuple[str, ...] | None = None,
        seconds: float = math.inf,
        network: Network | None = None,
        hold: bool = False,
    ) -> Launch:
        """`argv` is the script behind its call unless given; an empty one is the image's own program."""
        places = self.places(workdir)
        mount = order.service.mount.path
        return Launch(
            id=id,
            argv=environment.command(places) if argv is None else argv,
            env=environment.service_variables(order, places, self.node),
            workdir=workdir.job,
            cpu=order.cpu,
            memory=order.memory,
            seconds=seconds,
            pids=self.processes,
            network=network or self.network,
            binds=(
                Bind(workdir.config, environment.CONFIG, read_only=True),
                *([Bind(workdir.mount, f"/mnt/{mount}")] if mount else []),
                *(Bind(Path(volume.source), volume.target) for volume in order.mounts),
            ),
            group=order.mounts[0].gid if order.mounts else None,
            hold=hold,
        )

    async def start(self, launch: Launch, order: services.RunOrder) -> Process:
        return await self.runtime.start(launch, order.service.image)
