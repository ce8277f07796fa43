"""Which ports and which user ids do the clusters and the hub get? Chosen once, remembered, anew only when taken.

.playground/  lock  info.json  clusters.toml  <id>/{place.json, manager.log, and the manager's own data}
              hub/{place.json, hub.log, and the hub's own data}
"""

import asyncio
import fcntl
import json
import os
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hansa.kernel.errors import Conflict

NAMES = ("lubeck", "visby", "riga")
_FIRST_PORT = 8101
_HUB_PORTS = (8100, 8443)  # for people, for managers
# Below the embedded stores' ports, and below those Linux gives to outgoing connections, so that a remembered port
# is rarely taken by a passing one.
_OTHER_PORTS = range(8104, 10_900)
_UIDS_EACH = 256
# Far above users, subordinate ids and systemd's containers; wide enough for playgrounds to miss each other.
_UID_BLOCKS = range(1_900_000_000, 2_100_000_000, _UIDS_EACH * len(NAMES))
_PATIENCE = 30.0  # seconds for the managers of a killed playground to end


class AlreadyRunning(Conflict):
    """A playground runs in this folder already."""

    code = "playground.already-running"


@dataclass(frozen=True, slots=True)
class Place:
    """Where one cluster lives on this machine."""

    id: str
    folder: Path
    port: int
    uid_base: int

    @property
    def log(self) -> Path:
        return self.folder / "manager.log"


@dataclass(frozen=True, slots=True)
class HubPlace:
    """Where the hub lives."""

    folder: Path
    port: int
    members_port: int

    @property
    def log(self) -> Path:
        return self.folder / "hub.log"


@asynccontextmanager
async def only_one(folder: Path, tell: Callable[[str], None]) -> AsyncIterator[int]:
    """The lock of this folder as an open file. Managers hold it too: it is free when the last has ended."""
    lock = _open_lock(folder)
    try:
        if not _try_lock(lock, folder):
            tell("waiting for the managers of a killed playground to end")
            await _wait_for(lock, folder)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)
        yield lock
    finally:
        os.close(lock)


def _open_lock(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


async def _wait_for(lock: int, folder: Path) -> None:
    give_up = time.monotonic() + _PATIENCE
    while not _try_lock(lock, folder):
        if time.monotonic() > give_up:
            raise AlreadyRunning(
                f"managers of an earlier playground in {folder.parent} do not end",
                hint="look for them with: ps ax | grep 'hansa server'",
            )
        await asyncio.sleep(0.1)


def _try_lock(lock: int, folder: Path) -> bool:
    """False while only managers hold it; raises if a playground does."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode(errors="replace").strip()
        if not holder.isdigit() or Path(f"/proc/{holder}").exists():
            raise AlreadyRunning(
                f"a playground runs in {folder.parent} already (process {holder or 'unknown'})",
                hint="use it, or stop it with Ctrl-C in its terminal; .playground/info.json says how to reach it",
            ) from None
        return False
    return True


def places(folder: Path, claims: ExitStack) -> list[Place]:
    """Every cluster's place. The claims keep other playgrounds from choosing the same ports while we start."""
    kept = [_remembered(folder / name, "port", "uid_base") for name in NAMES]
    block = random.choice(_UID_BLOCKS)  # noqa: S311 - to miss others, not to be secret
    found = []
    for number, name in enumerate(NAMES):
        port, uid_base = kept[number] or (_FIRST_PORT + number, block + _UIDS_EACH * number)
        place = Place(name, folder / name, _port(port, claims), uid_base)
        _remember(place.folder, port=place.port, uid_base=place.uid_base)
        found.append(place)
    return found


def hub_place(folder: Path, claims: ExitStack) -> HubPlace:
    own = folder / "hub"
    port, members_port = _remembered(own, "port", "members_port") or _HUB_PORTS
    place = HubPlace(own, _port(port, claims), _port(members_port, claims))
    _remember(own, port=place.port, members_port=place.members_port)
    return place


def _remembered(folder: Path, first: str, second: str) -> tuple[int, int] | None:
    try:
        kept = json.loads((folder / "place.json").read_text())
        return int(kept[first]), int(kept[second])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(folder: Path, **numbers: int) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "place.json").write_text(json.dumps(numbers) + "\n")


def _port(wanted: int, claims: ExitStack) -> int:
    for port in (wanted, *random.sample(_OTHER_PORTS, len(_OTHER_PORTS))):
        if _claim(port, claims):
            return port
    raise Conflict("no free port for a server", hint="stop other servers on this machine")


def _claim(port: int, claims: ExitStack) -> bool:
    # A name in the kernel's own space: it goes with this process, and nothing has to be cleaned up.
    sign = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the manager will
        try:
            sign.bind(f"\0hansa-playground-port-{port}")
            probe.bind(("127.0.0.1", port))
        except OSError:
            sign.close()
            return False
    claims.callback(sign.close)
    return True
