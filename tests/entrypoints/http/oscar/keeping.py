"""The doors of buckets, volumes, quotas and metrics on real rooms, a real database and a real object store.

Who asks is said by the header `X-Test-User` instead of a token: sign-in has tests of its own.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException

from hansa import resources, storage
from hansa.drivers.runs.removal import remove
from hansa.drivers.s3 import OpenStore
from hansa.entrypoints.http import context, problems
from hansa.entrypoints.http.door import Door
from hansa.entrypoints.http.in_flight import InFlight
from hansa.entrypoints.http.oscar import buckets, metrics, quotas, volumes
from hansa.identity import Caller, Vault
from hansa.kernel.clock import Clock, SystemClock
from hansa.kernel.errors import HansaError
from hansa.kernel.quota import QuotaSettings
from hansa.services import Record, Service
from hansa.store import Database, ServiceStore, make_engine, schema, sqlite_url
from hansa.store.buckets import BucketStore
from hansa.store.people import PeopleStore
from hansa.store.quotas import QuotaStore
from hansa.store.usage import UsageStore
from hansa.store.volumes import VolumeStore

LIMITS = QuotaSettings(buckets=3, storage_per_bucket="1Ki")


@dataclass
class Services:
    records: ServiceStore


class Told:
    """Stands where things run, and hears whose quota is another."""

    def __init__(self) -> None:
        self.quotas: list[str] = []

    async def quota_changed(self, owner: str) -> None:
        self.quotas.append(owner)


@dataclass
class Keeping:
    """What the four doors use of an `App`."""

    database: Database
    vault: Vault
    open_store: OpenStore
    root: Path
    clock: Clock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        usage = UsageStore(self.database)
        register = storage.BucketRegister(BucketStore(self.database))
        grants = storage.Grants(self.open_store.users, register)
        self.people = storage.People(PeopleStore(self.database), grants, self.vault, "oscar-svc", self.clock)
        gauges = resources.Gauges(running=self._running, volumes=self._volumes, buckets=self._buckets)
        self.quotas = resources.Quotas(QuotaStore(self.database), LIMITS, gauges)
        store = self.open_store.store
        accounting = storage.Accounting(store, self.clock, register.owner_of)
        self.buckets = storage.Buckets(register, store, grants, self.people, self.quotas, accounting, self.clock)
        self.volumes = storage.Volumes(
            VolumeStore(self.database),
            storage.Folders(self.root / "volumes", remove),
            self.quotas,
            self.people,
            lambda *_: [],
            self.clock,
        )
        self.usage = resources.Usage(usage)
        self.room = Services(ServiceStore(self.database, self.vault))
        self.register = register
        self.engine = Told()

    async def _running(self, _uid: str) -> resources.Used:
        return resources.Used()

    async def _volumes(self, uid: str) -> resources.Used:
        return self.volumes.used(uid)

    async def _buckets(self, uid: str) -> resources.Used:
        return resources.Used(self.buckets.count(uid), await self.buckets.stored(uid))

    async def add_service(self, name: str, owner: str, visibility: str = "private") -> None:
        service = Service(name=name, image="i", script="true", owner=owner, visibility=visibility)
        await self.room.records.add(Record(service, 1, "ready", False, (), 1.0, 1.0), {})


def caller_by_header(request: Request) -> Caller:
    user = request.headers.get("x-test-user", "")
    return Caller(kind="user", uid=user, name=user.title(), subject=user) if user else Caller.admin()


def application(keeping: Keeping) -> FastAPI:
    api = FastAPI(redirect_slashes=False)
    api.state.hansa = keeping
    for door in (buckets, volumes, quotas, metrics):
        api.include_router(door.router)
    api.dependency_overrides[context.caller_of] = caller_by_header
    api.add_exception_handler(HansaError, problems.as_answer)
    api.add_exception_handler(HTTPException, problems.as_http_answer)
    api.add_exception_handler(RequestValidationError, problems.as_validation_answer)
    api.add_middleware(Door, registry=CollectorRegistry(), bodies=InFlight(2**24))
    return api


@asynccontextmanager
async def furnished(folder: Path, open_store: OpenStore) -> AsyncIterator[Keeping]:
    engine = make_engine(sqlite_url(folder))
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    try:
        keeping = Keeping(database, Vault([Vault.new_key()]), open_store, folder)
        try:
            yield keeping
        finally:
            for bucket in list(keeping.register):
                await open_store.store.delete_bucket(bucket.name)
            await open_store.users.publish(frozenset())
    finally:
        await database.close()


def as_user(name: str) -> dict[str, str]:
    return {"x-test-user": name}
