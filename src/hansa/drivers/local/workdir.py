"""Where does a run live on disk, and how far did it come?

    <root>/<name>/disk/job/   what the script sees as /job: input/, output/, script.sh, .call
    <root>/<name>/disk/mount/ a mounted bucket folder
    <root>/<name>/disk.img    what is mounted at disk/, for the run alone; not where that is a plain folder
    <root>/<name>/config/     what it sees, read-only, as /oscar/config
    <root>/<name>/state.json  how far the run came; outside of what the script can reach or fill

The script owned `job/` and may have left anything there: links, pipes, directories that cannot be entered.
The manager may be root. So nothing below it is ever opened by a path, only below a handle: see `runs.stager.beneath`.
"""

import errno
import json
import os
import secrets
from collections.abc import Generator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hansa import services
from hansa.drivers.local.disks import Disks
from hansa.drivers.runs import removal
from hansa.drivers.runs.stager import beneath
from hansa.drivers.runs.stager.beneath import LeftFile
from hansa.drivers.runs.stager.moving import INPUT, OUTPUT


@dataclass(frozen=True, slots=True)
class State:
    """How far a run came after its script ended."""

    outcome: services.Outcome
    staged: bool  # the outputs are where they belong; nothing is left to do


class Workdir:
    """The folder of one run. All calls block shortly: use them from a thread where trees may be large.

    `job` and `mount` are the paths by which a sandbox finds them; we come to the files in them by `reach`."""

    def __init__(self, root: Path, name: str, disks: Disks | None = None) -> None:
        self.home = root / name
        self._disks = disks or Disks(root)
        self.is_old = (self.home / "job").is_dir()
        """An older manager had no folder `disk`. What it left is delivered by us; a run that starts has a new one."""
        self.disk = self.home if self.is_old else self.home / "disk"
        self.job = self.disk / "job"
        self.config = self.home / "config"
        self.mount = self.disk / "mount"
        self._state = self.home / "state.json"
        self._mounted = self.home / "mounted.json"

    def create(self, script: str, definition: str, files: Mapping[str, bytes], disk: int = 0) -> None:
        """Fresh, with nothing but these files for the script: what a run that was cut short left is not mixed in. All
        the script writes is on a disk of `disk` bytes, where this machine can make one."""
        self.remove()
        self._disks.make(self.home, disk)
        top = self.reach
        job, mount = top / self.job.name, top / self.mount.name
        for folder in (self.input, self.output, mount, self.config):
            folder.mkdir(parents=True)
        # others may pass but not look: at the weaker levels of isolation a job walks the real path
        for folder in (self.home.parent, self.home, top):
            folder.chmod(0o711)
        job.chmod(0o700)  # it is the job's own before the job starts
        mount.chmod(0o777)
        (job / "script.sh").write_text(script)
        (self.config / "script.sh").write_text(script)
        (self.config / "function_config.yaml").write_text(definition)
        for folder in (job, self.config):
            (folder / "script.sh").chmod(0o755)
        self.lay_out(files, disk)

    @property
    def reach(self) -> Path:
        """The folder `disk` as this process comes to it."""
        return self.disk if self.is_old else self._disks.reach(self.home)

    @property
    def input(self) -> Path:
        return self.reach / self.job.name / INPUT

    @property
    def output(self) -> Path:
        return self.reach / self.job.name / OUTPUT

    @property
    def device(self) -> int | None:
        """What a sandbox has to mount at `disk`."""
        return self._disks.device(self.home)

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be written there. Only a disk of its own can tell."""
        return self._disks.is_full(self.home)

    def handles(self) -> list[int]:
        """Of the folders `job` and `mount`, whose names are ours: what lies above them only the manager can change."""
        top = self.reach
        with beneath.handle(top / self.job.name) as job, beneath.handle(top / self.mount.name) as mount:
            return [os.dup(job), os.dup(mount)]

    def lay_out(self, files: Mapping[str, bytes], disk: int = 0) -> None:
        """Files below `job/`, which may be a job's already. Too many for `disk` are refused before anything is written:
        a folder that is only watched would hold them, and a short run ends before anybody looks."""
        if disk and sum(map(len, files.values())) > disk:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        with beneath.handle(self.reach / self.job.name) as top:
            for path, content in files.items():
                beneath.write(top, path, content)

    @property
    def state(self) -> State | None:
        try:
            kept: dict[str, Any] = json.loads(self._state.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return State(services.Outcome(**kept["outcome"]), kept["staged"])

    def write_out(self) -> None:
        """Raises OSError if what the script wrote is not all there, though it was told so."""
        self._disks.write_out(self.home)

    def keep(self, state: State) -> None:
        """On disk, whole, when it returns."""
        fresh = self._state.with_name(f".state-{secrets.token_hex(4)}")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w") as file:
            json.dump({"outcome": asdict(state.outcome), "staged": state.staged}, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._state)
        home = os.open(self.home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(home)
        finally:
            os.close(home)

    def remove(self) -> None:
        """Follows no links; a missing folder is fine."""
        self._disks.drop(self.home)
        removal.remove(self.home)

    def left(self, most: int) -> Generator[LeftFile, None, None]:
        """What the script put into its output folder. Raises `TooMany` after `most` names."""
        with beneath.handle(self.reach / self.job.name) as top:
            yield from beneath.left_files(top, OUTPUT, self.owner, most)

    @property
    def has_output(self) -> bool:
        """Whether the script left anything there, or so much else that we do not look for it."""
        with beneath.handle(self.reach / self.job.name) as top:
            return beneath.holds_files(top, OUTPUT, self.owner)

    @property
    def mounted(self) -> dict[str, list[int]]:
        """Size and time of every file of the mounted folder as it came."""
        try:
            kept: dict[str, list[int]] = json.loads(self._mounted.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return kept

    def note_mounted(self, files: Mapping[str, list[int]]) -> None:
        self._mounted.write_text(json.dumps(files))

    @property
    def owner(self) -> int:
        """The user the script ran as."""
        return os.lstat(self.reach / self.job.name).st_uid
