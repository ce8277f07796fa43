"""One running manager, as the doors see it: the rooms, and what only the whole can tell."""

import asyncio
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hansa import __version__, resources, services, storage
from hansa.bootstrap.engines import Engines, Nodes
from hansa.bootstrap.store_repair import StoreRepair
from hansa.bootstrap.telemetry import Telemetry
from hansa.drivers import s3
from hansa.federation import member
from hansa.identity import Caller, SignIn, Visits
from hansa.kernel import errors
from hansa.kernel.clock import Clock
from hansa.services import Delegator, Deployment, Follower, Record, Reply, Room, RunOrder, UploadWatch
from hansa.settings import Settings
from hansa.store import Database, Facts

ALLOWED_IMAGES = "allowed_image_repositories"
_NOTES_AT_ONCE = 500


@dataclass(slots=True, kw_only=True)
class App:
    """One running manager."""

    settings: Settings
    clock: Clock
    telemetry: Telemetry
    sign_in: SignIn
    visits: Visits
    room: Room
    uploads: UploadWatch
    delegator: Delegator
    follower: Follower
    quotas: resources.Quotas
    usage: resources.Usage
    facts: Facts
    open_store: s3.OpenStore
    register: storage.BucketRegister
    accounting: storage.Accounting
    fullness: storage.Fullness
    store_repair: StoreRepair
    crowding: storage.Crowding | None  # where the store is on our own disk
    loans: storage.SureLoans | None  # those of `open_store`, if it lends any
    admission: resources.Admission
    engine: Engines
    database: Database
    own_images: tuple[str, ...]
    started: float
    membership: member.Membership = field(init=False)  # put in when the rest stands
    told_images: tuple[str, ...] | None = None  # by the hub, which wins
    quota_news: asyncio.Event = field(default_factory=asyncio.Event)
    calls: resources.CallNotes = field(default_factory=resources.CallNotes)

    @property
    def people(self) -> storage.People:
        return self.room.people

    @property
    def buckets(self) -> storage.Buckets:
        return self.room.buckets

    @property
    def nodes(self) -> Nodes:
        return self.engine.nodes

    @property
    def volumes(self) -> storage.Volumes:
        return self.room.volumes

    async def missing_parts(self) -> list[str]:
        """What does not answer now, in words."""
        missing: list[str] = []
        checks = {
            "database": self._check_database(),
            "object store": self.open_store.store.check(),
            self.engine.runtime: self.engine.check(),
        }
        found = await asyncio.gather(*checks.values(), return_exceptions=True)
        for part, error in zip(checks, found, strict=True):
            if isinstance(error, errors.HansaError):
                missing.append(f"{part}: {error.message}")
            elif error is not None:
                raise error
        return missing

    async def _check_database(self) -> None:
        await self.facts.get(ALLOWED_IMAGES)

    @property
    def allowed_images(self) -> tuple[str, ...]:
        return self.own_images if self.told_images is None else self.told_images

    async def allow_images(self, images: Sequence[str]) -> None:
        if self.told_images is not None:
            raise member.errors.SetByHub(
                "which images are allowed is set by the hub for this cluster",
                hint="change images.allowed in the hub's configuration, or take it out there",
            )
        await self.facts.set(ALLOWED_IMAGES, list(images))
        self.own_images = tuple(images)

    async def spill(self, record: Record, order: RunOrder, owner: str) -> Reply | None:
        """A member's answer to a synchronous run, where the service asks for it."""
        if not services.spilling.wanted(record.service):
            return None
        return await services.spilling.spill(self.delegator, record, order, owner)

    def rules(self) -> services.Rules:
        return services.Rules(self.allowed_images, default_provider(self.open_store.store.address))

    async def store_keys(self, caller: Caller) -> storage.Keys:
        """The caller's own keys for the object store; the admin's are the store's root keys."""
        return self.open_store.keys if caller.is_admin else await self.people.keys(caller)

    def deployment_of(self, record: Record) -> Deployment:
        """Whether what should run for a service does. A service of jobs has nothing that runs all the time."""
        name = record.service.name
        found = self.room.exposed_host.deployment(name) if record.service.exposed else None
        if found is not None:
            return found
        how = self.engine.how(record.service)
        if record.service.synchronous.min_scale > 0:
            workers = record.service.synchronous.min_scale
            return Deployment("ready", f"{workers} warm workers wanted; {how}", None, workers, 0, "knative_service")
        return Deployment("unavailable", how, None, 0, 0, "unavailable")

    def why_uploads_wait(self, service: str) -> str:
        """Why uploads to its folders are not jobs yet, or ""."""
        return self.room.uploads_waiting.get(service, "")

    async def write_calls(self) -> None:
        """Some at a time: others write in between."""
        while self.calls:
            each, counted = self.calls.take(_NOTES_AT_ONCE)
            try:
                await self.room.jobs.note(each, counted)
            except errors.Temporary:
                self.calls.put_back(each, counted)
                raise

    async def tell_quotas(self) -> None:
        """For ever: what runs things hears of quotas that changed for everybody."""
        while True:
            await self.quota_news.wait()
            self.quota_news.clear()
            await self.engine.quota_changed("")

    def resize(self) -> None:
        """What jobs may use together is what the nodes have now."""
        capacity, largest, ledger = self.nodes.capacity(), self.nodes.largest(), self.admission.ledger
        if (capacity.cpu, capacity.memory, largest) != (ledger.cpu, ledger.memory, ledger.largest):
            self.admission.resize(capacity.cpu, capacity.memory, largest)
            self.room.dispatcher.resized()

    async def watch_nodes(self) -> None:
        """For ever, where what they have may change."""
        if self.engine.watch is not None:
            await self.engine.watch(self.resize)


def default_provider(address: storage.StoreAddress) -> dict[str, Any]:
    """`minio.default` as every service shows it: the keys are nobody's business."""
    hidden = services.secret_parts.HIDDEN
    return {
        "endpoint": address.endpoint,
        "verify": address.verify,
        "access_key": hidden,
        "secret_key": hidden,
        "region": address.region,
    }


def about(engine_version: str = "") -> dict[str, Any]:
    """`/system/info`."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "version": __version__,
        "git_commit": "",
        "architecture": machine,
        "kubernetes_version": engine_version,
        "serverless_backend": {"name": "Hansa", "version": __version__},
    }
