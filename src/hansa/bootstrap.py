"""Builds the manager: the only file that knows every concrete class.

`opened` starts the parts in the order they need each other and stops them in reverse, also when one fails to start.
What a door needs of the whole (rather than of one room) is a method of `App`.
"""

import fcntl
import hashlib
import os
import platform
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import structlog

from hansa import __version__, resources, services, settings, storage
from hansa.drivers import local, oidc, s3
from hansa.identity import Basic, Caller, SignIn, Vault
from hansa.kernel import errors
from hansa.kernel.clock import Clock, SystemClock
from hansa.kernel.telemetry import Telemetry
from hansa.resources import Needs
from hansa.services import Deployment, Dispatcher, Invocation, Job, Outcome, Record, Room, RunOrder, UploadWatch
from hansa.settings import Settings
from hansa.store import (
    BucketStore,
    Database,
    Facts,
    JobStore,
    PeopleStore,
    QuotaStore,
    ServiceStore,
    UploadLedger,
    UsageStore,
    VolumeStore,
    make_engine,
    schema,
    sqlite_url,
)

_log = structlog.get_logger("hansa")
_ALLOWED_IMAGES = "allowed_image_repositories"
_MOST_NOTES = 100_000


class AlreadyRunning(errors.Conflict):
    """Another manager uses this data folder."""

    code = "manager.already-running"


@dataclass(slots=True, kw_only=True)
class App:
    """One running manager."""

    settings: Settings
    clock: Clock
    telemetry: Telemetry
    sign_in: SignIn
    room: Room
    uploads: UploadWatch
    quotas: resources.Quotas
    usage: resources.Usage
    facts: Facts
    open_store: s3.OpenStore
    accounting: storage.Accounting
    admission: resources.Admission
    node: local.LocalNode
    level: local.Level
    database: Database
    allowed_images: tuple[str, ...]
    started: float
    _notes: list[Invocation] = field(default_factory=list)

    @property
    def people(self) -> storage.People:
        return self.room.people

    @property
    def buckets(self) -> storage.Buckets:
        return self.room.buckets

    @property
    def volumes(self) -> storage.Volumes:
        return self.room.volumes

    async def missing_parts(self) -> list[str]:
        """What does not answer now, in words."""
        missing: list[str] = []
        for part, check in {"database": self._check_database, "object store": self.open_store.store.check}.items():
            try:
                await check()
            except errors.HansaError as error:
                missing.append(f"{part}: {error.message}")
        return missing

    async def _check_database(self) -> None:
        await self.facts.get(_ALLOWED_IMAGES)

    async def allow_images(self, images: Sequence[str]) -> None:
        await self.facts.set(_ALLOWED_IMAGES, list(images))
        self.allowed_images = tuple(images)

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
        if self.settings.sandbox.runtime == "podman":
            how = f"jobs run in the image {record.service.image}"
        else:
            how = f"jobs run in this machine's own userland inside a sandbox; image {record.service.image} is not used"
        if record.service.synchronous.min_scale > 0:
            workers = record.service.synchronous.min_scale
            return Deployment("ready", f"{workers} warm workers wanted; {how}", None, workers, 0, "knative_service")
        return Deployment("unavailable", how, None, 0, 0, "unavailable")

    def note(self, invocation: Invocation) -> None:
        """Written down in a moment, with others; a flood is cut off rather than kept in memory."""
        if len(self._notes) < _MOST_NOTES:
            self._notes.append(invocation)

    async def write_notes(self) -> None:
        batch, self._notes = self._notes, []
        await self.room.jobs.note(batch)

    async def repair_store(self) -> None:
        """After every restart of the embedded store its users and buckets are made sure of."""
        seen = 0
        while True:
            for refused in await self.buckets.converge():
                _log.warning("the store refused", what=refused)
            if self.open_store.embedded is None:
                return
            seen = await self.open_store.embedded.restarted(seen)


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


@asynccontextmanager
async def opened(given: Settings, clock: Clock | None = None) -> AsyncIterator[App]:
    """The manager with everything it needs, ready to serve."""
    clock = clock or SystemClock()
    async with AsyncExitStack() as parts:
        data = given.data.absolute()
        data.mkdir(parents=True, exist_ok=True)
        parts.callback(os.close, _lock(data))
        database = await _open_database(given, data, parts)
        vault = Vault.at(data / "vault.key")
        opened_store = await _open_store(given, data)
        parts.push_async_callback(opened_store.close)
        app = await _build(given, clock, data, database, vault, opened_store, parts)
        yield app


def _lock(data: Path) -> int:
    lock = os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise AlreadyRunning(
            f"another manager uses {data}", hint="stop it first, or set another folder with HANSA_DATA"
        ) from None
    return lock


async def _open_database(given: Settings, data: Path, parts: AsyncExitStack) -> Database:
    engine = make_engine(given.database.url or sqlite_url(data), given.database.pool)
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    parts.push_async_callback(database.close)
    return database


async def _open_store(given: Settings, data: Path) -> s3.OpenStore:
    asked = given.storage
    if asked.kind == "embedded":
        return await s3.open_embedded(data / "objects", public_endpoint=asked.public_endpoint)
    if not asked.endpoint:
        raise settings.BadSetting(f"storage.kind {asked.kind} needs storage.endpoint")
    address = storage.StoreAddress(asked.public_endpoint or asked.endpoint, asked.region, asked.verify)
    keys = storage.Keys(asked.access_key, asked.secret_key.get_secret_value())
    open_by_kind = s3.open_minio if asked.kind == "minio" else s3.open_s3
    return open_by_kind(address, keys, reach_at=asked.endpoint)


def open_foreign(kind: str, config: Mapping[str, Any]) -> storage.ObjectStore:
    """A store that came with a service: MinIO by its address, S3 by its region."""
    endpoint = str(config.get("endpoint") or "")
    verify = str(config.get("verify", "true")).lower() != "false"
    address = storage.StoreAddress(endpoint, str(config.get("region") or "us-east-1"), verify)
    return s3.S3Store(address, storage.Keys(str(config["access_key"]), str(config["secret_key"])))


class _Webhook:
    """Where a MinIO server tells of uploads: our own `/job`, with the service's token."""

    def __init__(self, notifications: storage.Notifications, public_url: str) -> None:
        self._notifications = notifications
        self._public_url = public_url.rstrip("/")

    async def register(self, service: str, token: str, folders: Sequence[tuple[str, str]]) -> None:
        by_bucket: dict[str, set[str]] = {}
        for bucket, folder in folders:
            by_bucket.setdefault(bucket, set()).add(f"{folder}/")
        frozen = {bucket: frozenset(prefixes) for bucket, prefixes in by_bucket.items()}
        await self._notifications.register(service, f"{self._public_url}/job/{service}", token, frozen)

    async def unregister(self, service: str, buckets: frozenset[str]) -> None:
        await self._notifications.unregister(service, buckets)


async def _build(
    given: Settings,
    clock: Clock,
    data: Path,
    database: Database,
    vault: Vault,
    open_store: s3.OpenStore,
    parts: AsyncExitStack,
) -> App:
    telemetry = Telemetry()
    node = local.LocalNode(socket.gethostname(), given.jobs)
    capacity = node.capacity()
    admission = resources.Admission(resources.Ledger(capacity.cpu, capacity.memory))
    records = ServiceStore(database, vault)
    jobs = JobStore(database)
    usage_store = UsageStore(database)

    register = storage.BucketRegister(BucketStore(database))
    has_users = given.storage.kind != "s3"
    grants = storage.Grants(open_store.users if has_users else None, register)
    people = storage.People(
        PeopleStore(database), grants, vault, given.cluster.services_namespace, clock, open_store.keys
    )
    gauges: dict[str, Any] = {}
    quotas = resources.Quotas(
        QuotaStore(database),
        given.quotas,
        resources.Gauges(
            jobs=usage_store.load_of,
            volumes=lambda uid: gauges["volumes"](uid),
            buckets=lambda uid: gauges["buckets"](uid),
        ),
    )
    accounting = storage.Accounting(open_store.store, clock)
    buckets = storage.Buckets(register, open_store.store, grants, people, quotas, accounting, clock)
    volumes = storage.Volumes(
        VolumeStore(database), data / "volumes", quotas, people, _attachments(records), clock, gid=given.sandbox.uid_base
    )
    gauges["volumes"] = _volumes_used(volumes)
    gauges["buckets"] = _buckets_used(buckets)

    runtime, level = await _open_runtime(given, data, parts)
    engine = local.Engine(
        runtime=runtime,
        store=open_store.store,
        open_foreign=open_foreign,
        work=data / "work",
        node=node.name,
        network=given.sandbox.network,
        processes=given.sandbox.processes,
    )
    logs = local.LogBook(data / "logs", given.jobs.log_limit)
    job_host = local.LocalJobHost(engine, logs)
    sync_host = local.LocalSyncHost(engine, admission)
    parts.push_async_callback(sync_host.close)
    exposed_host = local.LocalExposedHost(engine, admission)
    parts.push_async_callback(exposed_host.close)

    def order_for(job: Job) -> RunOrder | None:
        record = records.get(job.service)
        return services.orders.make(room, record, job.name, job.event) if record is not None else None

    def within_quota(owner: str, used: Needs, asked: Needs) -> bool:
        cpu, memory = quotas.cpu_limit(owner), quotas.memory_limit(owner)
        fits_cpu = cpu is None or used.cpu + asked.cpu <= cpu or not used.cpu
        return fits_cpu and (memory is None or used.memory + asked.memory <= memory or not used.memory)

    dispatcher = Dispatcher(
        jobs,
        job_host,
        admission,
        order_for=order_for,
        within_quota=within_quota,
        clock=clock,
        most_attempts=given.jobs.attempts,
        on_change=_counting(telemetry, clock),
    )
    notifications = open_store.notifications
    facts = Facts(database)
    allowed = await facts.get(_ALLOWED_IMAGES)
    public_url = given.cluster.public_url or f"http://{given.http.host}:{given.http.port}"
    provider = default_provider(open_store.store.address)
    room = Room(
        records=records,
        jobs=jobs,
        logs=logs,
        uploads=UploadLedger(database),
        people=people,
        buckets=buckets,
        volumes=volumes,
        store=open_store.store,
        job_host=job_host,
        sync_host=sync_host,
        exposed_host=exposed_host,
        rules=lambda: services.Rules(app.allowed_images, provider),
        limits=services.Limits(
            time_limit=given.jobs.time_limit,
            run_limit=given.jobs.run_limit,
            attempts=given.jobs.attempts,
            queue_limit=given.jobs.queue_limit,
            keep=given.jobs.keep,
            page_size=given.jobs.page_size,
        ),
        clock=clock,
        services_namespace=given.cluster.services_namespace,
        dispatcher=dispatcher,
        webhook=_Webhook(notifications, public_url) if notifications is not None else None,
    )
    app = App(
        settings=given,
        clock=clock,
        telemetry=telemetry,
        sign_in=await _sign_in(given, parts),
        room=room,
        uploads=UploadWatch(room, open_store.uploads, given.storage.reconcile_every),
        quotas=quotas,
        usage=resources.Usage(usage_store),
        facts=facts,
        open_store=open_store,
        accounting=accounting,
        admission=admission,
        node=node,
        level=level,
        database=database,
        allowed_images=tuple(allowed) if allowed is not None else given.images.allowed,
        started=clock.now(),
    )
    await records.load()
    await register.load()
    await people.load()
    await quotas.load()
    await volumes.load()
    await services.creation.recover(room)
    await dispatcher.recover()
    for record in records.all():
        if record.phase == "ready" and record.service.exposed:
            await services.creation.start_hosts(room, record)
    await services.creation.settle_workers(room)
    telemetry.jobs_waiting.set_function(lambda: dispatcher.waiting)
    telemetry.jobs_running.set_function(lambda: dispatcher.running)
    telemetry.services.set_function(lambda: len(records.all()))
    telemetry.cpu_promised.set_function(lambda: admission.ledger.promised.cpu)
    telemetry.memory_promised.set_function(lambda: admission.ledger.promised.memory)
    return app


async def _open_runtime(given: Settings, data: Path, parts: AsyncExitStack) -> tuple[local.Runtime, local.Level]:
    # several managers may share a machine, and one cluster's name may be used in two folders
    instance = f"{given.cluster.id[:24]}-{hashlib.sha256(str(data).encode()).hexdigest()[:8]}"
    runtime = await local.HostRuntime.open(instance=instance, uid_base=given.sandbox.uid_base, run_dir=data / "run")
    parts.push_async_callback(runtime.close)
    return runtime, runtime.level


async def _sign_in(given: Settings, parts: AsyncExitStack) -> SignIn:
    verifier = None
    if given.oidc.issuers:
        http = await parts.enter_async_context(httpx.AsyncClient(timeout=10, follow_redirects=False))
        verifier = oidc.OidcVerifier(given.oidc.issuers, http)
        parts.push_async_callback(verifier.close)
    admin = Basic(given.admin.user, settings.admin_password(given))
    return SignIn(admin, verifier, given.oidc.users_admin)


def _attachments(records: ServiceStore) -> Callable[[str, str], Sequence[storage.Attachment]]:
    def attached(namespace: str, name: str) -> list[storage.Attachment]:
        return [
            storage.Attachment(record.service.name, volume.mount_path)
            for record in records.all()
            if (volume := record.service.volume) is not None
            and (record.service.namespace, volume.name) == (namespace, name)
        ]

    return attached


def _volumes_used(volumes: storage.Volumes) -> resources.Gauge:
    async def used(uid: str) -> resources.Used:
        return volumes.used(uid)

    return used


def _buckets_used(buckets: storage.Buckets) -> resources.Gauge:
    async def used(uid: str) -> resources.Used:
        return resources.Used(buckets.count(uid), await buckets.stored(uid))

    return used


def _counting(telemetry: Telemetry, clock: Clock) -> Callable[[Job, Outcome | None], None]:
    def count(job: Job, outcome: Outcome | None) -> None:
        if outcome is None:
            telemetry.wait_seconds.observe(max(0.0, clock.now() - job.created))
        else:
            telemetry.jobs_ended.labels("Succeeded" if outcome.succeeded else "Failed").inc()

    return count


def about() -> dict[str, Any]:
    """`/system/info`."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "version": __version__,
        "git_commit": "",
        "architecture": machine,
        "kubernetes_version": "",
        "serverless_backend": {"name": "Hansa", "version": __version__},
    }
