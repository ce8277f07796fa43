"""Where does a run live on disk, and how far did it come?

    <root>/<name>/job/       what the script sees as /job: input/, output/, script.sh, .call
    <root>/<name>/config/    what it sees, read-only, as /oscar/config
    <root>/<name>/mount/     a mounted bucket folder
    <root>/<name>/state.json how far the run came; outside of what the script can reach

The script owned `job/` and may have left anything there: links, pipes, directories that cannot be entered.
The manager may be root. So nothing below it is ever opened by following a link: see `runs.left_files`.
"""

import contextlib
import json
import os
import secrets
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hansa import services
from hansa.drivers.runs.left_files import left_files
from hansa.kernel import errors


@dataclass(frozen=True, slots=True)
class State:
    """How far a run came after its script ended."""

    outcome: services.Outcome
    staged: bool  # the outputs are where they belong; nothing is left to do


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
