"""A whole local engine for the tests of its hosts: a real sandbox, a real store, folders of its own."""

import asyncio
import itertools
import os
import secrets
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from hansa import resources
from hansa.drivers.local import images
from hansa.drivers.local.background import Background
from hansa.drivers.local.disks import Disks, trouble
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.job_host import LocalJobHost
from hansa.drivers.local.job_logs import LogBook
from hansa.drivers.local.runtime import HostRuntime, Runtime
from hansa.drivers.local.staging import OwnStore
from hansa.drivers.s3 import OpenStore
from hansa.kernel.errors import Temporary
from hansa.storage import ObjectStore
from real import parts

# sessions may run side by side on one machine: each takes other uids
_uid_bases = itertools.count(60_000_000 + os.getpid() % 2000 * 25_600, 256)


@pytest.fixture
def home() -> Iterator[Path]:
    """Not pytest's own: its folders stay, and hold what users of other tests may not see."""
    with tempfile.TemporaryDirectory(prefix="hansa-engine-") as folder:
        yield Path(folder)


@pytest.fixture
def uid_base() -> int:
    return next(_uid_bases)


@pytest.fixture
async def runtime(home: Path, uid_base: int) -> AsyncIterator[HostRuntime]:
    parts.require("bubblewrap")
    opened = await HostRuntime.open(instance=f"t-{secrets.token_hex(4)}", uid_base=uid_base, run_dir=home / "launcher")
    yield opened
    await opened.close()


@pytest.fixture
def store(object_store: OpenStore) -> ObjectStore:
    return object_store.store


@pytest.fixture
async def bucket(store: ObjectStore) -> AsyncIterator[str]:
    name = f"test-{secrets.token_hex(8)}"
    await store.create_bucket(name)
    yield name
    await store.delete_bucket(name)


async def dial(host: str, port: int, own: bool, whose: str) -> socket.socket:
    """To wherever a test says."""
    made = socket.socket()
    made.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(made, (host, port))
    except OSError as error:
        made.close()
        raise Temporary(f"{host}:{port} does not answer") from error
    return made


@pytest.fixture
async def own_store(object_store: OpenStore) -> AsyncIterator[OwnStore]:
    background = Background()
    yield OwnStore(
        address=object_store.store.address,
        root=object_store.keys,
        later=background.start,
        loans=object_store.loans,
    )
    await background.finish()


@pytest.fixture
def disks(home: Path) -> Iterator[Disks]:
    """As good as this machine can: a manager that is root has images."""
    opened = Disks.open(home / "work", hard=not trouble(), size=images.SMALLEST)
    yield opened
    opened.close()


@pytest.fixture
def engine(runtime: Runtime, own_store: OwnStore, home: Path, disks: Disks) -> Engine:
    return Engine(
        runtime=runtime, own=own_store, dial=dial, work=home / "work", node="node-1", patience=10, disks=disks
    )


@pytest.fixture
def logs(home: Path) -> LogBook:
    return LogBook(home / "logs", limit=64 * 1024)


@pytest.fixture
def host(engine: Engine, logs: LogBook) -> LocalJobHost:
    """Modules about other hosts have one of their own."""
    return LocalJobHost(engine, logs)


@pytest.fixture
def admission() -> resources.Admission:
    return resources.Admission(resources.Ledger(cpu=4000, memory=2**30))
