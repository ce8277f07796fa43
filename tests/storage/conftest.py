"""The storage room with real parts: SQLite in a file and the session's embedded object store."""

import secrets
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hansa.drivers.s3 import Limits, OpenStore, S3Store
from hansa.drivers.s3.seaweed_rpc import Filer
from hansa.drivers.s3.users import SeaweedUsers
from hansa.identity import Caller, Vault
from hansa.storage import Keys, StoreAddress
from hansa.store import Database, make_engine, schema, sqlite_url
from storage.furnished import Away, HandClock, Room, user


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    engine = make_engine(sqlite_url(tmp_path))
    schema.upgrade(engine)
    opened = Database(engine)
    opened.start()
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def room(database: Database, clock: HandClock, object_store: OpenStore) -> AsyncIterator[Room]:
    made = Room(database, Vault([Vault.new_key()]), clock, object_store.store, object_store.users)
    try:
        yield made
    finally:
        for bucket in list(made.register):
            await object_store.store.delete_bucket(bucket.name)
        await object_store.users.publish(frozenset())


@pytest.fixture
async def away() -> AsyncIterator[Away]:
    with socket.socket() as held:  # bound and not listening: refused at once, and nobody else gets the port
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        keys = Keys("nobody-here", "long-enough-secret")
        store = S3Store(StoreAddress(f"http://127.0.0.1:{port}", "us-east-1", False), keys, limits=Limits(attempts=1))
        users = SeaweedUsers(Filer(f"127.0.0.1:{port}", "a-key-of-nobody-at-all"), keys)
        try:
            yield Away(store, users)
        finally:
            await users.close()
            await store.close()


@pytest.fixture
def alice() -> Caller:
    return user("alice")


@pytest.fixture
def bob() -> Caller:
    return user("bob")


@pytest.fixture
def name() -> str:
    """A fresh name for a bucket."""
    return f"test-{secrets.token_hex(8)}"
