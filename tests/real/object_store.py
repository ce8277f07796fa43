"""A real object store for tests: one embedded SeaweedFS for the session, on loopback, in a folder of its own.

`object_store` is it, opened with the administrator's keys (`.store`, `.users`, `.uploads`,
`.as_user(keys)`); make buckets with fresh names. `object_store_server` is only the address and keys, for
whoever opens it differently."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import pytest

from hansa.drivers.s3 import EmbeddedStore, OpenStore, S3Store
from hansa.drivers.s3.seaweed_events import SeaweedEvents
from hansa.drivers.s3.seaweed_loans import SeaweedLoans
from hansa.drivers.s3.seaweed_rpc import Filer
from hansa.drivers.s3.users import SeaweedUsers
from hansa.storage import Keys, StoreAddress

START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class RunningStore:
    address: StoreAddress
    keys: Keys
    filer: Filer
    store: S3Store  # one for the session: making a client takes longer than most tests


@pytest.fixture(scope="session")
def object_store_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStore]:
    # In a thread with its own loop: each test has a loop of its own, and the server outlives them all.
    started: Future[RunningStore] = Future()
    finished = threading.Event()
    thread = threading.Thread(
        target=lambda: asyncio.run(_serve(tmp_path_factory.mktemp("store"), started, finished)),
        name="object store",
    )
    thread.start()
    try:
        yield started.result(START_SECONDS)
    finally:
        finished.set()
        thread.join(START_SECONDS)


async def _serve(folder: Path, started: "Future[RunningStore]", finished: threading.Event) -> None:
    try:
        embedded = await EmbeddedStore.open(folder)
    except BaseException as error:
        started.set_exception(error)
        return
    try:
        store = S3Store(embedded.address, embedded.root_keys)
        started.set_result(RunningStore(embedded.address, embedded.root_keys, embedded.filer, store))
        await asyncio.to_thread(finished.wait)
        await store.close()
    finally:
        await embedded.close()


@pytest.fixture
async def object_store(object_store_server: RunningStore) -> AsyncIterator[OpenStore]:
    server = object_store_server
    users = SeaweedUsers(server.filer, server.keys)
    loans = SeaweedLoans(users, server.keys)
    yield OpenStore(server.store, server.keys, users, loans, uploads=SeaweedEvents(server.filer))
    await users.close()
