"""In what does a full cluster live, so that this machine has no part in it but one link?

A bottle is a set of namespaces (mounts, network, processes, name, IPC) with the cluster's control groups around it.
`bottle.sh` is its first process: all others end with it, and mounts and link vanish with them. From outside one end of
a link is seen, through which tests reach the API and node ports at `slot.address`. Needs root.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from real.kubernetes import control_groups
from real.kubernetes.processes import PATH, TIED, Processes
from real.kubernetes.slots import Slot

_INIT = Path(__file__).with_name("bottle.sh")
_NAME = "bottle"
_START_SECONDS = 30.0
_COMMAND_SECONDS = 60.0
_TOOLS = ("ip", "unshare", "nsenter", "setpriv", "mount", "bash")


@dataclass(frozen=True, slots=True)
class Bottle:
    slot: Slot
    first: int  # the number, seen from here, of its first process

    def words(self, *command: str) -> list[str]:
        """The command, to be run inside and within the cluster's limits."""
        return [*_joining(self.slot), *entering(self.first), "--", *command]

    def cut(self) -> None:
        """The inner end goes down: were it the outer one, this machine would send its packets to strangers."""
        run_inside(self.first, "ip", "link", "set", "eth0", "down")

    def heal(self) -> None:
        run_inside(self.first, "ip", "link", "set", "eth0", "up")
        run_inside(self.first, "ip", "route", "replace", "default", "via", self.slot.host)


def entering(first: int) -> list[str]:
    return ["nsenter", f"--target={first}", "--mount", "--net", "--pid", "--uts", "--ipc", "--wd=/"]


def run_inside(first: int, *command: str) -> str:
    """What the command printed; run with no limits on it, by whoever may."""
    return _run([*entering(first), "--", *command])


def start(slot: Slot, processes: Processes, folder: Path, tree: Path, node: str) -> Bottle:
    slot.groups.make()
    namespaces = ("--mount", "--net", "--pid", "--uts", "--ipc", "--propagation=private")
    processes.start(
        _NAME,
        [*TIED, *_joining(slot), "unshare", *namespaces, "--fork", "--kill-child", str(_INIT)],
        {"TREE": str(tree), "FOLDER": str(folder), "NODE": node},
    )
    processes.until((folder / "bottle-ready").exists, _START_SECONDS, "the bottle", _NAME)
    first = processes.child(_NAME)
    _run(["ip", "link", "add", slot.link, "type", "veth", "peer", "name", "eth0", "netns", str(first)])
    _run(["ip", "address", "add", f"{slot.host}/30", "dev", slot.link])
    _run(["ip", "link", "set", slot.link, "up"])
    made = Bottle(slot, first)
    run_inside(first, "ip", "address", "add", f"{slot.address}/30", "dev", "eth0")
    made.heal()
    return made


def hindrance() -> str:
    """Why there can be none here; "" if there can."""
    if os.geteuid() != 0:
        return "only root may make the namespaces of a full cluster"
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=PATH) is None]
    if missing:
        return f"no program `{missing[0]}`"
    return control_groups.hindrance()


def _joining(slot: Slot) -> list[str]:
    """Words before a command: it enters the control groups itself, so that no child of it can be outside."""
    files = [str(entry) for entry in slot.groups.entries()]
    script = 'n=$1; shift; while [ $n -gt 0 ]; do echo $$ >$1 || exit 1; shift; n=$((n - 1)); done; exec "$@"'
    return ["sh", "-c", script, "join", str(len(files)), *files]


def _run(words: Sequence[str]) -> str:
    done = subprocess.run(
        words,
        env={"PATH": PATH},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_COMMAND_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout
