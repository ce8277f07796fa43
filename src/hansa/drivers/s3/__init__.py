"""How do we touch object stores? Three kinds behind the ports of `hansa.storage`:

- embedded: SeaweedFS, started beside the manager (`seaweed.py`), users, events and what buckets hold by its
  filer's RPC (`users.py`, `seaweed_events.py`, `seaweed_books.py`);
- minio: a MinIO server, users and webhooks by its administration (`minio.py`);
- s3: any other S3, without users or events of its own (`plain.py`).

All three read and write with `client.py`. Bootstrap calls one of the `open_…` functions and gets an
`OpenStore`."""

import ipaddress
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# gRPC reads these when it is imported. Its core writes to stderr itself, past our logs; and it would look after itself
# at every fork, though whoever forks here becomes another program at once.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from hansa.drivers.s3.client import Limits, S3Store
from hansa.drivers.s3.errors import (
    NoUserAdministration,
    StoreBinaryMissing,
    StoreInUse,
    StoreUnreachable,
    StoreUnsafe,
)
from hansa.drivers.s3.minio import MinioConnection, MinioNotifications, MinioUsers
from hansa.drivers.s3.minio_loans import MinioLoans
from hansa.drivers.s3.plain import NoUsers
from hansa.drivers.s3.relay import Relay
from hansa.drivers.s3.seaweed import EmbeddedStore, State
from hansa.drivers.s3.seaweed_books import SeaweedBooks
from hansa.drivers.s3.seaweed_events import SeaweedEvents
from hansa.drivers.s3.seaweed_home import weed_binary
from hansa.drivers.s3.seaweed_loans import SeaweedLoans
from hansa.drivers.s3.users import SeaweedUsers
from hansa.storage import BucketBooks, Closable, Keys, Loans, Notifications, StoreAddress, StoreUsers, UploadSource

__all__ = [
    "EmbeddedStore",
    "Limits",
    "NoUserAdministration",
    "OpenStore",
    "Relay",
    "S3Store",
    "State",
    "StoreBinaryMissing",
    "StoreInUse",
    "StoreUnreachable",
    "StoreUnsafe",
    "open_embedded",
    "open_minio",
    "open_s3",
    "weed_binary",
]


@dataclass(frozen=True, slots=True)
class OpenStore:
    """A store with all it offers. `uploads` and `notifications` are None where the store has no such
    thing."""

    store: S3Store  # with the administrator's keys
    keys: Keys = field(repr=False)
    users: StoreUsers
    loans: Loans | None = None  # where the store cannot make any, whoever moves a run's files asks for each signature
    uploads: UploadSource | None = None
    notifications: Notifications | None = None
    embedded: EmbeddedStore | None = None
    relay: Relay | None = None
    books: BucketBooks | None = None  # where the store tells more of a bucket than its listing shows
    closable: Closable | None = None  # of a store that is on this machine's own disk

    def as_user(self, keys: Keys) -> S3Store:
        """The same store with somebody's own keys; whoever opens it closes it."""
        return S3Store(self.store.address, keys, reach_at=self.store.reach_at)

    async def close(self) -> None:
        if self.loans is not None:
            await self.loans.close()
        await self.users.close()
        if self.notifications is not None:
            await self.notifications.close()
        await self.store.close()
        if self.relay is not None:
            await self.relay.close()
        if self.embedded is not None:
            await self.embedded.close()


async def open_embedded(
    data_dir: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    public_endpoint: str = "",
    on_state: Callable[[State], None] = lambda _: None,
) -> OpenStore:
    """Starts the embedded store of this folder. Its S3 port answers at `host` too (on loopback it does anyway), at
    `port` or the store's own number; `public_endpoint` is what clients are told."""
    embedded = await EmbeddedStore.open(data_dir, on_state=on_state)
    inner, keys = embedded.address, embedded.root_keys
    relay: Relay | None = None
    shown = inner.endpoint
    if port or not _is_loopback(host):
        try:
            relay = await Relay.open(host, port or embedded.s3_port, ("127.0.0.1", embedded.s3_port))
        except BaseException:
            await embedded.close()
            raise
        shown = f"http://{f'[{host}]' if ':' in host else host}:{relay.port}"
    public = StoreAddress(public_endpoint or shown, inner.region, inner.verify)
    users = SeaweedUsers(embedded.filer, keys)
    return OpenStore(
        S3Store(public, keys, reach_at=inner.endpoint),
        keys,
        users,
        SeaweedLoans(users, keys),
        uploads=SeaweedEvents(embedded.filer),
        embedded=embedded,
        relay=relay,
        books=SeaweedBooks(embedded.filer),
        closable=users,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def open_minio(address: StoreAddress, keys: Keys, *, reach_at: str = "") -> OpenStore:
    """A MinIO server, with an administrator's keys. `reach_at` is its address for us, if not that of
    clients."""
    reach_at = reach_at or address.endpoint
    connection = MinioConnection(StoreAddress(reach_at, address.region, address.verify), keys)
    return OpenStore(
        S3Store(address, keys, reach_at=reach_at),
        keys,
        MinioUsers(connection),
        MinioLoans(connection),
        notifications=MinioNotifications(connection),
    )


def open_s3(address: StoreAddress, keys: Keys, *, reach_at: str = "") -> OpenStore:
    """Any other S3: only the administrator works with it."""
    return OpenStore(S3Store(address, keys, reach_at=reach_at), keys, NoUsers())
