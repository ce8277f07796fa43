"""Where does a run live on disk, and how far did it come?

    <root>/<name>/job/       what the script sees as /job: input/, output/, script.sh, .call
    <root>/<name>/config/    what it sees, read-only, as /oscar/config
    <root>/<name>/mount/     a mounted bucket folder
    <root>/<name>/state.json how far the run came; outside of what the script can reach

The script owned `job/` and may have left anything there: links, pipes, directories that cannot be entered.
The manager may be root. So nothing below it is ever opened by following a link: see `left_files`.
"""

import contextlib
import json
import os
import secrets
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hansa import services
from hansa.kernel import errors

_DEEPEST = 64
_NOFOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe must not make us wait


@dataclass(frozen=True, slots=True)
class State:
    """How far a run came after its script ended."""

    outcome: services.Outcome
    staged: bool  # the outputs are where they belong; nothing is left to do


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A regular file the script left, open for reading."""

    relative: str  # "/" between its steps
    fd: int
    size: int
    modified: int  # nanoseconds

    @property
    def path(self) -> Path:
        """A path to exactly this open file, whatever happens to its name."""
        return Path(f"/proc/self/fd/{self.fd}")


class Workdir:
    """The folder of one run. All calls block shortly: use them from a thread where trees may be large."""

    def __init__(self, root: Path, name: str) -> None:
        self.home = root / name
        self.job = self.home / "job"
        self.input = self.job / "input"
        self.output = self.job / "output"
        self.config = self.home / "config"
        self.mount = self.home / "mount"
        self._state = self.home / "state.json"
        self._mounted = self.home / "mounted.json"

    def create(self, script: str, definition: str) -> None:
        """Fresh and empty: what a run that was cut short left behind is not mixed in."""
        self.remove()
        for folder in (self.input, self.output, self.config, self.mount):
            folder.mkdir(parents=True)
        # others may pass but not look: at the weaker levels of isolation a job walks the real path
        for folder in (self.home.parent, self.home):
            folder.chmod(0o711)
        self.mount.chmod(0o777)
        (self.job / "script.sh").write_text(script)
        (self.config / "script.sh").write_text(script)
        (self.config / "function_config.yaml").write_text(definition)
        for folder in (self.job, self.config):
            (folder / "script.sh").chmod(0o755)

    @property
    def state(self) -> State | None:
        try:
            kept: dict[str, Any] = json.loads(self._state.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return State(services.Outcome(**kept["outcome"]), kept["staged"])

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
        with contextlib.suppress(FileNotFoundError):
            try:
                shutil.rmtree(self.home)
            except (RecursionError, PermissionError):
                # nested deeper than Python can follow, or closed by a script that ran as our own user
                subprocess.run(["chmod", "-R", "u+rwx", "--", self.home], check=False, capture_output=True)
                subprocess.run(["rm", "-rf", "--", self.home], check=True, capture_output=True)

    @property
    def has_output(self) -> bool:
        with contextlib.suppress(errors.Invalid):
            return next(left_files(self.output, self.owner), None) is not None
        return True

    @property
    def mounted(self) -> dict[str, list[int]]:
        """Size and time of every file of the mounted folder as it came."""
        try:
            kept: dict[str, list[int]] = json.loads(self._mounted.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return kept

    def note_mounted(self) -> None:
        files = left_files(self.mount, self.owner)
        self._mounted.write_text(json.dumps({file.relative: [file.size, file.modified] for file in files}))

    @property
    def owner(self) -> int:
        """The user the script ran as."""
        return os.lstat(self.job).st_uid


def left_files(folder: Path, owner: int) -> Iterator[LeftFile]:
    """Every regular file below, in order of name, each closed when the next one is asked for.

    Each step is opened relative to the one before and never through a link, so a script cannot make us read
    anything outside. A second name of a file of somebody else (a hard link) is left out for the same reason.
    """
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW)
    except OSError:
        return  # the script removed it, or put something else in its place
    try:
        yield from _walk(top, "", owner)
    finally:
        os.close(top)


def _walk(folder: int, prefix: str, owner: int) -> Iterator[LeftFile]:
    if prefix.count("/") > _DEEPEST:
        raise errors.Invalid(f"the script left folders nested deeper than {_DEEPEST}")
    for name in sorted(os.listdir(folder)):
        try:
            fd = os.open(name, os.O_RDONLY | _NOFOLLOW, dir_fd=folder)
        except OSError:
            continue  # a link, a socket, or gone
        try:
            facts = os.fstat(fd)
            # S3 keys are text: a name in another encoding keeps what can be read of it
            relative = prefix + os.fsencode(name).decode("utf-8", "replace")
            if stat.S_ISDIR(facts.st_mode):
                yield from _walk(fd, relative + "/", owner)
            elif stat.S_ISREG(facts.st_mode) and (facts.st_nlink == 1 or facts.st_uid == owner):
                yield LeftFile(relative, fd, facts.st_size, facts.st_mtime_ns)
        finally:
            os.close(fd)
