"""Builds the manager: the only place that knows every concrete class.

`opened` starts the parts in the order they need each other and stops them in reverse, also when one fails to start.
"""

import asyncio
import fcntl
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import structlog

from hansa import resources, services, settings, storage
from hansa.bootstrap import data_folder, engines, federating, loans, webhooks
from hansa.bootstrap.app import ALLOWED_IMAGES, App, default_provider
from hansa.bootstrap.applying import limits_of
from hansa.bootstrap.doctor import WAIVED
from hansa.bootstrap.membership import membership
from hansa.bootstrap.people import uids
from hansa.bootstrap.store_repair import StoreRepair
from hansa.bootstrap.telemetry import Telemetry
from hansa.drivers import egress, oidc, s3
from hansa.identity import Basic, SignIn, Throttle, Uids, Vault, Visits
from hansa.kernel import disk_room, errors, quantities
from hansa.kernel.clock import Clock, SystemClock
from hansa.services import Dispatcher, Job, Outcome, Room, RunDisk, RunOrder, UploadWatch
from hansa.settings import Settings
from hansa.store import (
    AuditStore,
    BucketStore,
    Database,
    Facts,
    JobStore,
    LineageStore,
    PeopleStore,
    QuotaStore,
    ServiceStore,
    UploadLedger,
    UsageStore,
    VolumeStore,
    make_engine,
    schema,
    sealed,
    sqlite_url,
)

_log = structlog.get_logger("hansa")

_DIAL_SECONDS = 10.0


class AlreadyRunning(errors.Conflict):
    """Another manager uses this data folder."""

    code = "manager.already-running"


@asynccontextmanager
async def opened(given: Settings, clock: Clock | None = None) -> AsyncIterator[App]:
    """The manager with everything it needs, ready to serve."""
    clock = clock or SystemClock()
    async with AsyncExitStack() as parts:
        data = given.data.resolve()
        with data_folder.with_room(data):
            app = await _build(await _ground(given, clock, data, parts))
        yield app


async def _ground(given: Settings, clock: Clock, data: Path, parts: AsyncExitStack) -> "_Ground":
    data_folder.close(data)
    parts.callback(os.close, _lock(data))
    driver = engines.open_driver(given, data, clock, parts)
    await driver.prepare(data)
    database = await _open_database(given, data, parts)
    vault = Vault.at(data / "vault.key", needed=await asyncio.to_thread(sealed.any_of_manager, database.engine))
    opened_store = loans.surely_ended(await _open_store(given, data), database, clock)
    parts.push_async_callback(opened_store.close)
    door = _open_door(given, opened_store)
    parts.push_async_callback(door.close)
    services_here = ServiceStore(database, vault)
    records = driver.records(services_here)
    return _Ground(given, clock, data, database, vault, opened_store, door, services_here, records, driver, parts)


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
        return await s3.open_embedded(
            data / "objects", host=asked.host, port=asked.port, public_endpoint=asked.public_endpoint
        )
    if not asked.endpoint:
        raise settings.BadSetting(f"storage.kind {asked.kind} needs storage.endpoint")
    address = storage.StoreAddress(asked.public_endpoint or asked.endpoint, asked.region, asked.verify)
    keys = storage.Keys(asked.access_key, asked.secret_key.get_secret_value())
    open_by_kind = s3.open_minio if asked.kind == "minio" else s3.open_s3
    return open_by_kind(address, keys, reach_at=asked.endpoint)


def _open_door(given: Settings, store: s3.OpenStore) -> egress.Door:
    """The inner ports of our own store know no users, so not even the operator's allowances open them."""
    inner = store.embedded.inner_ports if store.embedded is not None else ()
    return egress.Door(egress.Rule.of(given.egress.allow, never=inner))


def _dialling(door: egress.Door) -> Callable[[str, int, bool, str], Awaitable[socket.socket]]:
    """For those who move files: to a store whose address is no tenant's word wherever it is, else by the rule."""

    async def dial(host: str, port: int, vouched: bool, payer: str) -> socket.socket:
        own = ((host, port),) if vouched else ()
        return await door.connect(host, port, timeout=_DIAL_SECONDS, own=own, whose=payer)

    return dial


@dataclass(frozen=True, slots=True)
class _Ground:
    """What everything else stands on."""

    given: Settings
    clock: Clock
    data: Path
    database: Database
    vault: Vault
    open_store: s3.OpenStore
    door: egress.Door  # the way out for whatever tenants name
    services_here: ServiceStore  # in the database
    records: services.Services  # there, and wherever else the driver keeps them
    driver: engines.Driver
    parts: AsyncExitStack


@dataclass(frozen=True, slots=True)
class _Keeping:
    """What users keep here and how much they may."""

    register: storage.BucketRegister
    people: storage.People
    buckets: storage.Buckets
    volumes: storage.Volumes
    quotas: resources.Quotas
    shares: resources.Shares
    accounting: storage.Accounting
    fullness: storage.Fullness

    async def load(self) -> None:
        await self.register.load()
        await self.people.load()
        await self.quotas.load()
        await self.volumes.load()


def _keeping(ground: _Ground, ledger: resources.Ledger) -> _Keeping:
    given, clock, store = ground.given, ground.clock, ground.open_store.store
    register = storage.BucketRegister(BucketStore(ground.database))
    has_users = given.storage.kind != "s3"
    grants = storage.Grants(ground.open_store.users if has_users else None, register)
    people = storage.People(
        PeopleStore(ground.database),
        grants,
        ground.vault,
        given.cluster.services_namespace,
        clock,
        ground.open_store.keys,
        ground.driver.claim,
    )

    async def volumes_used(uid: str) -> resources.Used:
        return volumes.used(uid)

    async def buckets_used(uid: str) -> resources.Used:
        return resources.Used(buckets.count(uid), await buckets.stored(uid))

    async def running(uid: str) -> resources.Used:
        return resources.Used(shares.of(uid).cpu, shares.of(uid).memory)

    async def disk_used(uid: str) -> resources.Used:
        return resources.Used(size=shares.of(uid).disk)

    gauges = resources.Gauges(running=running, disk=disk_used, volumes=volumes_used, buckets=buckets_used)
    quotas = resources.Quotas(QuotaStore(ground.database), given.quotas, gauges)
    shares = resources.Shares(quotas.share)
    accounting = storage.Accounting(store, clock, register.owner_of, ground.open_store.books)
    ground.parts.push_async_callback(accounting.close)
    buckets = storage.Buckets(
        register,
        store,
        grants,
        people,
        quotas,
        accounting,
        clock,
        given.storage.link_longest,
        loans.of(ground.open_store),
    )
    ground.parts.push_async_callback(buckets.close)
    volumes = storage.Volumes(
        VolumeStore(ground.database),
        ground.driver.places(),
        quotas,
        people,
        _attachments(ground.records),
        clock,
        lambda: ledger.free.disk,
    )
    news = ground.open_store.uploads is not None
    fullness = storage.Fullness(register, grants, quotas, accounting, given.storage.quota_every, news=news)
    return _Keeping(register, people, buckets, volumes, quotas, shares, accounting, fullness)


def _crowding(ground: _Ground, register: storage.BucketRegister) -> storage.Crowding | None:
    store, data = ground.open_store.closable, ground.data
    if store is None:
        return None
    reserve = quantities.size(ground.given.jobs.disk_reserve or "0", what="disk")
    return storage.Crowding(register, store, lambda: disk_room.free(data), reserve)


async def _build(ground: _Ground) -> App:
    given, clock, records, open_store = ground.given, ground.clock, ground.records, ground.open_store
    telemetry = Telemetry()
    usage = UsageStore(ground.database)
    per_run = ground.driver.disk_per_run()
    # what every run has is waited for, however small the disk: only a service that asks for more can ask for too much
    ledger = resources.Ledger(0, 0, disk_most=max(per_run, ground.driver.disk_most()))  # filled below
    ledger.disk = lambda: ground.driver.disk() - keeping.volumes.promised
    keeping = _keeping(ground, ledger)
    away_keys = federating.AwayKeys(open_store)
    nodes = await ground.driver.nodes(lambda: ledger.promised)
    capacity = nodes.capacity()
    ledger.cpu, ledger.memory, ledger.largest = capacity.cpu, capacity.memory, nodes.largest()
    admission = resources.Admission(ledger, shares=keeping.shares)
    run_disk = RunDisk(per_run, keeping.quotas.disk_limit)
    engine_ground = engines.Ground(
        open_store=open_store,
        dial=_dialling(ground.door),
        away_keys=away_keys,
        admission=admission,
        door=ground.door,
    )
    engine = await ground.driver.engines(engine_ground, nodes)
    backlog = services.Backlog(on_room=lambda: app.uploads.wake())  # noqa: PLW0108 - the app is made below
    jobs = JobStore(ground.database, on_end=backlog.leave)

    def order_for(job: Job) -> RunOrder | None:
        record = records.get(job.service)
        if record is None:
            return None
        gate = services.receiving.gate(room, job)
        return services.orders.make(
            room,
            record,
            job.name,
            job.event,
            submitter=job.owner,
            may_publish=gate,
            movable=delegable(job.service),
        )

    def disk_of(name: str) -> int:
        record = records.get(name)
        return run_disk.of(record.service) if record is not None else 0

    def delegable(name: str) -> bool:
        record = records.get(name)
        return record is not None and bool(services.replicas.own_targets(record.service))

    dispatcher = Dispatcher(
        jobs,
        engine.jobs,
        admission,
        order_for=order_for,
        clock=clock,
        most_attempts=engine.attempts,
        on_change=_counting(telemetry, clock),
        delegable=delegable,
        on_stuck=lambda: app.delegator.wake(),  # noqa: PLW0108 - the app is made below
        permitted=lambda waiting: services.duty.may_start(room, waiting, app.delegator.in_vain),
        on_turned_away=lambda name: app.delegator.offer_now(name),  # noqa: PLW0108 - as above
        disk_of=disk_of,
        publish_wait=engine.publish_wait,
    )
    keeping.quotas.on_change(dispatcher.resized)
    keeping.quotas.on_change(admission.look_again)
    abroad = federating.federating(given, ground.database, ground.vault, ground.door, clock, ground.parts)
    known = await uids(given, ground.database)
    facts = Facts(ground.database)
    allowed = await facts.get(ALLOWED_IMAGES)
    provider = default_provider(open_store.store.address)
    room = Room(
        records=records,
        jobs=jobs,
        logs=engine.logs,
        uploads=UploadLedger(ground.database),
        people=keeping.people,
        buckets=keeping.buckets,
        volumes=keeping.volumes,
        store=open_store.store,
        job_host=engine.jobs,
        sync_host=engine.sync,
        exposed_host=engine.exposed,
        rules=lambda: services.Rules(
            app.allowed_images, provider, ground.door.rule, nodes_pull=ground.driver.nodes_pull()
        ),
        limits=limits_of(given),
        disk=run_disk,
        share_of=keeping.quotas.share,
        allotment=services.Allotment(keeping.quotas.enforced),
        clock=clock,
        services_namespace=given.cluster.services_namespace,
        groups=tuple(group for issuer in given.oidc.issuers for group in issuer.groups),
        dispatcher=dispatcher,
        webhook=webhooks.of(given, open_store, records),
        backlog=backlog,
        cluster_id=given.cluster.id,
        own_endpoint=federating.own_endpoint(given),
        home_mark=known.home_mark,
        keyring=_keyring(ground, keeping.people, abroad.peers),
        member_keys=services.replicas.MemberKeys(ground.vault.derived("members of federations")),
        key_holders=await federating.KeyHolders.loaded(facts),
        away_keys=away_keys,
        check_store=federating.checking(ground.door, clock),
        check_place=lambda url, own: ground.door.check_url(url, scheme="https", own=own),
        **abroad.for_room(),
    )
    follower = federating.follower(given, room)
    app = App(
        settings=given,
        clock=clock,
        telemetry=telemetry,
        sign_in=await sign_in(given, known, ground.parts, clock),
        visits=Visits(ground.vault.derived("visits"), clock),
        room=room,
        uploads=UploadWatch(room, open_store.uploads, given.storage.reconcile_every, keeping.fullness.heard),
        delegator=federating.delegator(given, room, follower),
        follower=follower,
        quotas=keeping.quotas,
        usage=resources.Usage(usage),
        facts=facts,
        open_store=open_store,
        register=keeping.register,
        accounting=keeping.accounting,
        fullness=keeping.fullness,
        store_repair=StoreRepair(open_store.embedded, keeping.fullness, keeping.buckets),
        crowding=_crowding(ground, keeping.register),
        loans=loans.of(open_store),
        admission=admission,
        engine=engine,
        database=ground.database,
        own_images=tuple(allowed) if allowed is not None else given.images.allowed,
        started=clock.now(),
    )
    await ground.services_here.load()
    await keeping.load()
    await abroad.load()
    await ground.driver.load(keeping.people, keeping.quotas)
    app.membership = membership(app, abroad.peers, ground.data, ground.parts)
    await app.membership.open()
    present = await engine.present()
    if app.loans is not None:
        away = {services.lending.of(one): one.job for one in await abroad.delegations.active()}
        await loans.take_over(room, app.loans, {name: name for name in present} | away)
    await _take_up(room)
    await _clear_work(room, present)
    _watch(telemetry, app)
    return app


async def _take_up(room: Room) -> None:
    """What an earlier life of this manager left: half-made services, jobs, processes that should run."""
    await room.backlog.settle(room.jobs.open_sizes)
    await services.creation.recover(room)
    await room.dispatcher.recover()
    for record in room.records.all():
        if record.phase == "ready" and record.service.exposed:
            await services.creation.start_hosts(room, record)
    await services.creation.settle_workers(room)


async def _clear_work(room: Room, present: Sequence[str]) -> None:
    """Runs that had ended, and were not taken away any more when the manager died."""
    needed = {waiting.name for waiting in await room.jobs.waiting()}
    for name in present:
        if name not in needed:
            await room.job_host.discard(name)


def _watch(telemetry: Telemetry, app: App) -> None:
    dispatcher, ledger = app.room.dispatcher, app.admission.ledger
    telemetry.jobs_waiting.set_function(lambda: dispatcher.waiting)
    telemetry.jobs_running.set_function(lambda: dispatcher.running)
    telemetry.services.set_function(lambda: len(app.room.records.all()))
    telemetry.cpu_promised.set_function(lambda: ledger.promised.cpu)
    telemetry.memory_promised.set_function(lambda: ledger.promised.memory)


async def sign_in(given: Settings, known: Uids, parts: AsyncExitStack, clock: Clock) -> SignIn:
    """Who may come in: the admin, and whoever a trusted issuer vouches for."""
    verifier = None
    for issuer in given.oidc.issuers:
        if issuer.any_audience:
            _log.warning("tokens made for any client of this issuer let people in", issuer=issuer.url, hint=WAIVED)
    if given.oidc.issuers:
        http = await parts.enter_async_context(httpx.AsyncClient(timeout=10, follow_redirects=False))
        verifier = oidc.OidcVerifier(given.oidc.issuers, http)
        parts.push_async_callback(verifier.close)
    admin = Basic(given.admin.user, settings.admin_password(given))
    return SignIn(admin, verifier, known, given.oidc.users_admin, Throttle(given.http.wrong_passwords, clock))


def _keyring(ground: _Ground, people: storage.People, peers: services.Peers) -> services.credentials.Keyring:
    """What this manager shows to other clusters; closed before the store, so that no rotated token is lost."""
    http = httpx.AsyncClient(timeout=10, follow_redirects=False)
    ground.parts.push_async_callback(http.aclose)
    keyring = services.credentials.Keyring(
        records=ground.records,
        lineages=LineageStore(ground.database, ground.vault),
        exchange=oidc.OidcExchange(ground.given.oidc.issuers, http, clock=ground.clock),
        owners=people,
        audit=AuditStore(ground.database),
        peers=peers,
        clock=ground.clock,
        rotation_days=ground.given.federation.token_rotation_days,
    )
    ground.parts.push_async_callback(keyring.close)
    return keyring


def _attachments(records: services.Services) -> Callable[[str, str], Sequence[storage.Attachment]]:
    def attached(namespace: str, name: str) -> list[storage.Attachment]:
        return [
            storage.Attachment(record.service.name, volume.mount_path)
            for record in records.all()
            if (volume := record.service.volume) is not None
            and (record.service.namespace, volume.name) == (namespace, name)
        ]

    return attached


def _counting(telemetry: Telemetry, clock: Clock) -> Callable[[Job, Outcome | None], None]:
    def count(job: Job, outcome: Outcome | None) -> None:
        if outcome is None:
            telemetry.wait_seconds.observe(max(0.0, clock.now() - job.created))
        else:
            telemetry.jobs_ended.labels("Succeeded" if outcome.succeeded else "Failed").inc()

    return count
