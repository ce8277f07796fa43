"""What do the three hosts of this machine share? Runtime, stores, folders, and how an order becomes a launch.

`bootstrap` makes one `Engine` and gives it to `LocalJobHost`, `LocalSyncHost` and `LocalExposedHost`.
"""

import asyncio
import errno
import math
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from hansa import services
from hansa.drivers.local import volume_images
from hansa.drivers.local.disks import Disks
from hansa.drivers.local.launch import Bind, Device, Launch, LaunchInvalid, Network, Watched
from hansa.drivers.local.runtime import Process, Runtime
from hansa.drivers.local.staging import DialStore, OwnStore, Say, Staging
from hansa.drivers.local.workdir import Workdir
from hansa.drivers.runs import environment, words
from hansa.drivers.runs.environment import Places
from hansa.drivers.runs.stager.moving import INPUT
from hansa.kernel import errors
from hansa.services import events


class DiskTooSmall(errors.Invalid):
    """The input of a run does not fit on its disk."""

    code = "sandbox.disk-too-small"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How runs are made on this machine."""

    runtime: Runtime
    own: OwnStore
    dial: DialStore
    """The way to stores, and the only one."""
    work: Path
    """Where the folders of runs are."""
    node: str
    """This machine's name, as scripts see it in RESOURCE_ID."""
    network: Network = "none"
    """What jobs and calls may reach."""
    processes: int = 256
    patience: float = 300.0
    """Seconds for which a store that does not answer is asked again."""
    disks: Disks = field(default_factory=lambda: Disks(Path("/")))
    """Where runs write; plain folders unless told otherwise."""

    def workdir(self, name: str, shelf: str = "") -> Workdir:
        """Jobs stand right in `work`; what does not outlive the manager is on a shelf, for `sweep` to clear."""
        root = self.work.absolute()
        return Workdir(root / f".{shelf}" if shelf else root, name, self.disks)

    async def sweep(self) -> None:
        """Clears what calls and exposed services of a manager that died left; before any host starts."""
        for shelf in ("run", "exposed"):
            await asyncio.to_thread(self.workdir(f".{shelf}").remove)

    async def present(self) -> list[str]:
        """Jobs of which there is a folder."""
        folders = await asyncio.to_thread(lambda: list(self.work.iterdir()) if self.work.is_dir() else [])
        return [folder.name for folder in folders if not folder.name.startswith(".")]

    def ended(self) -> list[str]:
        """Jobs whose script has ended. It looks into every folder: not for the loop."""
        found = [state.parent.name for state in self.work.glob("[!.]*/state.json")]
        return [name for name in found if self.workdir(name).state is not None]

    def places(self, workdir: Workdir) -> Places:
        return Places(
            job=self.runtime.inside(workdir.job, environment.JOB),
            config=self.runtime.inside(workdir.config, environment.CONFIG),
        )

    async def prepare(self, order: services.RunOrder, workdir: Workdir, files: Mapping[str, bytes]) -> None:
        """A fresh folder with the script in it, and these files beside it."""
        definition = environment.definition_text(order.service)
        making = asyncio.create_task(
            asyncio.to_thread(workdir.create, order.service.script, definition, files, order.disk),
            name=f"prepare {workdir.home.name}",
        )
        try:
            await asyncio.shield(making)
        except OSError as error:
            raise _in_words(error, order, files) from error
        finally:
            await asyncio.wait({making})  # a thread runs on when we are cancelled: who clears up must not meet it

    async def lay_out(self, order: services.RunOrder, workdir: Workdir) -> None:
        """What this call is about, for a run that was prepared before it came."""
        files = self.call_files(order, workdir)
        try:
            await asyncio.to_thread(workdir.lay_out, files, order.disk)
        except OSError as error:
            raise _in_words(error, order, files) from error

    def staging(self, order: services.RunOrder, workdir: Workdir, say: Say) -> Staging:
        return Staging(
            order=order,
            workdir=workdir,
            movers=self.runtime,
            own=self.own,
            dial=self.dial,
            say=say,
            patience=self.patience,
        )

    def call_files(self, order: services.RunOrder, workdir: Workdir) -> dict[str, bytes]:
        """What this call is about, for the script's first shell to read; and what was sent, if that is the input."""
        given = events.interpret(order.event)
        name, text = environment.call_file(environment.call_variables(order, given, self.places(workdir)))
        files = {name: text.encode("utf-8", "surrogateescape")}
        if isinstance(given, events.BytesInput):
            files[f"{INPUT}/{environment.input_name(given)}"] = given.data
        return files

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
            disk=order.disk,
            largest_file=max(order.disk, order.memory, *(volume.size for volume in order.mounts)) if order.disk else 0,
            watched=self._watched(order, workdir),
        )

    def _watched(self, order: services.RunOrder, workdir: Workdir) -> tuple[Watched, ...]:
        """What has no limit of its own."""
        own = [] if self.disks.hard or not order.disk else [Watched(workdir.disk, order.disk)]
        volumes = [
            Watched(Path(volume.source), volume.size, shared=True)
            for volume in order.mounts
            if volume.size and not volume_images.has_image(Path(volume.source))
        ]
        return (*own, *volumes)

    async def start(self, launch: Launch, order: services.RunOrder, workdir: Workdir) -> Process:
        """On its own disk, and with its volumes."""
        with ExitStack() as opened:  # once it has started, it holds them itself
            devices = [Device(device, workdir.disk)] if (device := workdir.device) is not None else []
            for volume in order.mounts:
                folder = Path(volume.source)
                if (image := volume_images.image_of(folder)) is None:
                    continue
                if not self.disks.hard:
                    words = f"the volume {folder.name} {volume_images.unmountable(self.disks.why_soft)}"
                    raise LaunchInvalid(words, hint=volume_images.MOUNT_AGAIN)
                attached = await asyncio.to_thread(self.disks.volume, image, folder)
                if attached is not None:
                    opened.callback(attached.close)
                    devices.append(Device(attached.device, folder))
            return await self.runtime.start(replace(launch, devices=tuple(devices)), order.service.image)


def _in_words(error: OSError, order: services.RunOrder, files: Mapping[str, bytes]) -> Exception:
    if error.errno not in (errno.ENOSPC, errno.EFBIG) or not order.disk:
        return error
    return DiskTooSmall(words.disk_too_small(sum(map(len, files.values())), order.disk), hint=words.MORE_DISK)
