"""How do scripts run in the image their service names? Through podman's command line, one container each.

The second `Runtime` (see `runtime.py`), for `sandbox.runtime = "podman"`. Needs root and podman 4 or newer. Each
container runs as a user of its own from the manager's range, never as root, with a read-only image: an image that
insists on being root does not run here. Containers outlive a manager that is killed; the next one ends them.

Nothing a user wrote is ever an option or the environment of podman itself: names stand behind `--`, variables in a
private file, and only `docker://` is pulled from, so an image's name cannot mean a file of this machine.
"""

import asyncio
import itertools
import json
import os
import re
import socket
import weakref
from collections.abc import Sequence
from pathlib import Path

from hansa.drivers.local.container import Container, PodmanCommand
from hansa.drivers.local.launch import CallOff, Launch, LaunchFailed, LaunchInvalid, SandboxRefused
from hansa.drivers.local.pulling import WayOut, cell_for
from hansa.drivers.local.runtime import HostRuntime, Process
from hansa.kernel.egress import HINT

_UIDS = 256
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/:@-]{0,511}")
_TARGET = re.compile(r"/[^,:\0]*")
_OPEN_FILES = 4096
_LABEL = "hansa.instance"


class PodmanRuntime:
    """Scripts in containers."""

    images = True

    def __init__(
        self,
        podman: PodmanCommand,
        instance: str,
        uid_base: int,
        pull_seconds: float,
        movers: HostRuntime,
        way_out: WayOut,
    ) -> None:
        """`movers` starts those who move files: beside containers, not in them."""
        self._podman = podman
        self._movers = movers
        self._way_out = way_out
        self._instance = instance
        self._uids = itertools.cycle(range(uid_base, uid_base + _UIDS))
        self._pull_seconds = pull_seconds
        self._pulls = weakref.WeakValueDictionary[str, asyncio.Lock]()  # for as long as somebody waits there

    @classmethod
    async def open(
        cls, *, instance: str, uid_base: int, run_dir: Path, way_out: WayOut, pull_seconds: float = 600
    ) -> "PodmanRuntime":
        """Ends first what an earlier manager of this instance left behind. Images are pulled by `way_out` alone."""
        if os.geteuid() != 0:
            raise SandboxRefused("podman needs root here", hint="use sandbox.runtime = host, or run as root")
        podman = PodmanCommand(run_dir, _configuration)
        await podman.call("version", failing="podman does not work on this machine")
        movers = await HostRuntime.open(instance=instance, uid_base=uid_base, run_dir=run_dir, jobs=False)
        opened = cls(podman, instance, uid_base, pull_seconds, movers, way_out)
        await opened._end_all()
        return opened

    async def start(self, launch: Launch, image: str) -> Process:
        _check(launch, image)
        await self._fetch(image)
        uid = next(self._uids)
        gid = uid if launch.group is None else launch.group
        await asyncio.to_thread(_give, launch.workdir, uid, gid)
        name = f"hansa-{self._instance}-{launch.id}"
        container = Container(self._podman, name, launch)
        try:
            with self._podman.private_configuration(name, launch.env) as configuration:
                await self._podman.call(
                    "create",
                    *self._options(launch, name, uid, gid),
                    *_program(launch, image),
                    failing=f"the container of {launch.id} could not be made",
                    configuration=configuration,
                )
            await container.begin()
        except BaseException:
            await container.remove()
            raise
        return container

    def inside(self, source: Path, target: str) -> str:
        return target

    async def stage(self, channel: socket.socket, folders: Sequence[int], tls: Sequence[bool]) -> CallOff:
        return await self._movers.stage(channel, folders, tls)

    async def close(self) -> None:
        await self._movers.close()
        await self._end_all()

    async def _end_all(self) -> None:
        label = f"label={_LABEL}={self._instance}"
        left = (await self._podman.call("ps", "--all", "--quiet", "--filter", label)).split()
        if left:
            await self._podman.call("rm", "--force", "--time", "0", *left)

    async def _fetch(self, image: str) -> None:
        """Once at a time for each image; what is here already is not looked for elsewhere."""
        turn = self._pulls.setdefault(image, asyncio.Lock())
        async with turn:
            if await self._podman.succeeds("image", "exists", "--", image):
                return
            async with cell_for(image, self._way_out) as cell:
                try:
                    await self._podman.call(
                        "pull",
                        "--quiet",
                        "--",
                        f"docker://{image}",
                        failing=f"the image {image} could not be pulled",
                        seconds=self._pull_seconds,
                        cell=cell,
                    )
                except LaunchFailed as error:
                    if why := cell.refused():
                        raise LaunchFailed(f"the image {image} could not be pulled: {why}", hint=HINT) from error
                    raise

    def _options(self, launch: Launch, name: str, uid: int, gid: int) -> list[str]:
        options = ["--name", name, "--label", f"{_LABEL}={self._instance}", "--pull", "never"]
        options += ["--user", f"{uid}:{gid}", "--cap-drop", "all", "--security-opt", "no-new-privileges"]
        options += ["--read-only", "--log-driver", "none", "--hostname", "job", "--workdir", "/job"]
        options += ["--cpus", f"{launch.cpu / 1000:.3f}", "--pids-limit", str(launch.pids)]
        options += ["--memory", f"{launch.memory}b", "--memory-swap", f"{launch.memory}b"]
        options += ["--umask", "0022" if launch.group is None else "0007"]
        options += ["--network", "host" if launch.network == "host" else "none"]
        if launch.network == "own":
            options += ["--sysctl", "net.ipv4.ip_unprivileged_port_start=0"]
        # its default limits need the right to raise ours, and one told here takes the place of all in its configuration
        limits = {"nofile": _OPEN_FILES, "nproc": _OPEN_FILES, "fsize": launch.largest_file}
        for kind, limit in limits.items():
            if limit:
                options += ["--ulimit", f"{kind}={limit}:{limit}"]
        options += ["--volume", f"{launch.workdir.absolute()}:/job:rw"]
        for bind in launch.binds:
            mode = "ro" if bind.read_only else "rw"
            options += ["--volume", f"{bind.source.absolute()}:{bind.target}:{mode}"]
        return options


def _program(launch: Launch, image: str) -> list[str]:
    """Without a program of ours, the image's own."""
    if not launch.argv:
        return ["--", image]
    return ["--entrypoint", json.dumps([launch.argv[0]]), "--", image, *launch.argv[1:]]


def _check(launch: Launch, image: str) -> None:
    if not _IMAGE.fullmatch(image):
        raise LaunchInvalid(f"{image[:80]!r} is not the name of an image", hint="for example name:tag")
    for bind in launch.binds:
        if not _TARGET.fullmatch(bind.target) or "," in str(bind.source) or ":" in str(bind.source):
            raise LaunchInvalid(f"{bind.target[:80]!r} cannot be mounted", hint="no comma and no colon")


def _give(workdir: Path, uid: int, gid: int) -> None:
    """The script is its owner, as in the sandbox. Nothing has run in it yet."""
    for _, directories, files, here in os.fwalk(workdir):
        os.chown(here, uid, gid)
        for name in (*directories, *files):
            os.chown(name, uid, gid, dir_fd=here, follow_symlinks=False)


def _configuration(variables: dict[str, str]) -> str:
    """For podman on a machine that may have no systemd, which its defaults need.

    Variables go in here and not on the command line, which every user can read. TOML takes JSON's strings.
    """
    listed = [json.dumps(f"{name}={value}", ensure_ascii=False) for name, value in variables.items()]
    return (
        f"[containers]\nenv = [{', '.join(listed)}]\n"
        '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\n'
    )
