"""A whole local engine for the tests of its hosts: a real sandbox, a real store, folders of its own."""

import itertools
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hansa import resources
from hansa.drivers.local.engine import Engine
from hansa.drivers.local.runtime import HostRuntime, Runtime
from hansa.drivers.s3 import OpenStore, S3Store
from hansa.storage import Keys, ObjectStore, StoreAddress
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


def open_foreign(kind: str, config: Mapping[str, Any]) -> ObjectStore:
    address = StoreAddress(config["endpoint"], config.get("region", ""), verify=True)
    return S3Store(address, Keys(config["access_key"], config["secret_key"]))


@pytest.fixture
def engine(runtime: Runtime, store: ObjectStore, home: Path) -> Engine:
    return Engine(
        runtime=runtime,
        store=store,
        open_foreign=open_foreign,
        work=home / "work",
        node="node-1",
        patience=10,
    )


@pytest.fixture
def admission() -> resources.Admission:
    return resources.Admission(resources.Ledger(cpu=4000, memory=2**30))
