"""The storage room as `bootstrap` builds it, and the people who use it in tests."""

import secrets
from dataclasses import dataclass, field

from hansa import resources
from hansa.drivers.s3 import S3Store
from hansa.drivers.s3.users import SeaweedUsers
from hansa.identity import Caller, Vault
from hansa.kernel.quota import QuotaSettings
from hansa.storage import Accounting, BucketRegister, Buckets, Erasing, Grants, ObjectStore, People, RunKeys, StoreUsers
from hansa.store import Database
from hansa.store.buckets import BucketStore
from hansa.store.people import PeopleStore
from hansa.store.quotas import QuotaStore

PREFIX = "oscar-svc"
SMALL = QuotaSettings(buckets=3, storage_per_bucket="1Ki")


@dataclass
class HandClock:
    """Time that passes when a test says so."""

    moment: float = 1_800_000_000.0

    def now(self) -> float:
        return self.moment


@dataclass
class Room:
    """All of it, opened anew from the same database as after a restart: `await room.restarted(...)`."""

    database: Database
    vault: Vault
    clock: HandClock
    store: ObjectStore
    users: StoreUsers | None
    settings: QuotaSettings = SMALL
    runs: RunKeys | None = None
    patience: float = 30.0  # of whoever waits for a bucket to go
    register: BucketRegister = field(init=False)
    grants: Grants = field(init=False)
    people: People = field(init=False)
    quotas: resources.Quotas = field(init=False)
    buckets: Buckets = field(init=False)

    def __post_init__(self) -> None:
        self.register = BucketRegister(BucketStore(self.database))
        self.grants = Grants(self.users, self.register)
        self.people = People(PeopleStore(self.database), self.grants, self.vault, PREFIX, self.clock)
        self.quotas = resources.Quotas(QuotaStore(self.database), self.settings)
        accounting = Accounting(self.store, self.clock, self.register.owner_of)
        self.buckets = Buckets(
            self.register, self.store, self.grants, self.people, self.quotas, accounting, self.clock, runs=self.runs,
            erasing=Erasing(self.patience),
        )  # fmt: skip

    async def restarted(self, store: ObjectStore | None = None, users: StoreUsers | None = None) -> "Room":
        room = Room(
            self.database, self.vault, self.clock, store or self.store, users or self.users, self.settings, self.runs
        )
        await room.register.load()
        await room.people.load()
        await room.quotas.load()
        return room


@dataclass(frozen=True)
class Away:
    """A store that nobody listens for."""

    store: S3Store
    users: SeaweedUsers


def user(name: str) -> Caller:
    """A user nobody else of this session is."""
    uid = f"{name}-{secrets.token_hex(6)}@example.org"
    return Caller(kind="user", uid=uid, name=name.title(), issuer="https://idp", subject=uid)
