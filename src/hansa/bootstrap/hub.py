"""Builds a hub: the only place that knows the concrete classes behind its room."""

import asyncio
import fcntl
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import BinaryIO, get_args

from hansa.bootstrap import data_folder, parts_here
from hansa.bootstrap.building import AlreadyRunning, sign_in
from hansa.bootstrap.people import uids
from hansa.bootstrap.telemetry import HubTelemetry
from hansa.drivers import oscar
from hansa.federation import (
    Fence,
    Hub,
    HubClock,
    Registry,
    Trust,
    configuration,
    detector,
    history,
    learning,
    outsiders,
    policies,
    rotation,
    syncing,
    tokens,
)
from hansa.identity import SignIn, Vault
from hansa.messages.clusters import Facts, State
from hansa.messages.members import Totals
from hansa.settings import Settings
from hansa.store import Database, hub, make_engine, schema, sealed, sqlite_url
from hansa.store.hub import backup

Work = tuple[str, float, Callable[[Fence], Awaitable[object]]]  # its name, seconds between turns, and what is done
_AUTHORITY_EVERY, _TOKENS_EVERY = 1.0, 3600.0


@dataclass(slots=True, kw_only=True)
class HubApp:
    """One running hub process, as its doors see it."""

    settings: Settings
    hub: Hub
    sign_in: SignIn
    database: Database
    vault: Vault
    outsiders: outsiders.Outsiders
    telemetry: HubTelemetry = field(default_factory=HubTelemetry)
    works: list[Work] = field(default_factory=list)  # periodic work beside the detector's and the housekeeping

    def save(self, passphrase: str, out: BinaryIO) -> int:
        """Everything of one moment, as one file; works in a thread of its own."""
        return backup.write(self.database.engine, key_file(self.settings).read_bytes(), passphrase, out)

    async def missing_parts(self) -> list[str]:
        """What does not answer now, in words."""
        return [f"database: {self.hub.trouble}"] if self.hub.trouble else []


class _Outsiders:
    """Clusters we ask ourselves: the driver's line, and the store's sealed credentials."""

    def __init__(self, driver: oscar.OscarOutsiders, credentials: hub.CredentialStore) -> None:
        self._driver = driver
        self._credentials = credentials

    async def ask(self, facts: Facts, login: outsiders.Login) -> Totals:
        return await self._driver.ask(facts, login.user, login.password)

    def sealed(self, cluster: str, login: outsiders.Login) -> bytes:
        return self._credentials.sealed(cluster, {"user": login.user, "password": login.password})

    async def login(self, cluster: str) -> outsiders.Login | None:
        found = await self._credentials.get(cluster)
        return None if found is None else outsiders.Login(found["user"], found["password"])


def key_file(given: Settings) -> Path:
    return parts_here.hub(given).key


def restore_hub(given: Settings, source: BinaryIO, passphrase: str) -> int:
    """Brings a saved hub back into this place, which must be empty; how many rows it has."""
    folder = given.data.absolute() / "hub"
    _make(folder)
    lock = _lock(folder)
    engine = make_engine(given.database.url or sqlite_url(folder), given.database.pool)
    try:
        return backup.read(engine, source, passphrase, key_file(given))
    finally:
        engine.dispose()
        os.close(lock)


def _make(folder: Path) -> None:
    data_folder.close(folder.parent)
    folder.mkdir(exist_ok=True, mode=0o700)


def new_id() -> str:
    """Of this life of this process: another after every start, so that nobody takes it for its former self."""
    return f"{socket.gethostname()[:40]}-{os.urandom(4).hex()}"


@asynccontextmanager
async def opened_hub(given: Settings) -> AsyncIterator[HubApp]:
    """The hub with everything it needs, its memory in step with the database."""
    async with AsyncExitStack() as parts:
        with data_folder.with_room(given.data.absolute()):
            app = await _opened(given, parts)
        yield app


async def _opened(given: Settings, parts: AsyncExitStack) -> HubApp:
    folder = given.data.absolute() / "hub"
    _make(folder)
    if not given.database.url:
        parts.callback(os.close, _lock(folder))
    engine = make_engine(given.database.url or sqlite_url(folder), given.database.pool)
    schema.upgrade(engine)
    database = Database(engine)
    database.start()
    parts.push_async_callback(database.close)
    vault = Vault.at(key_file(given), needed=await asyncio.to_thread(sealed.any_of_hub, engine))
    driver = oscar.OscarOutsiders()
    parts.push_async_callback(driver.close)
    room = _room(given, database, vault)
    app = HubApp(
        settings=given,
        hub=room,
        sign_in=await sign_in(given, await uids(given, database), parts, room.clock),
        database=database,
        vault=vault,
        outsiders=_Outsiders(driver, hub.CredentialStore(database, vault)),
    )
    app.works.append(("history", history.EVERY, partial(history.take, app.hub)))
    app.works.append(("probes", given.hub.heartbeat_every, partial(outsiders.probe_all, app.hub, app.outsiders)))
    _tell(app)
    app.works += [
        ("authority", _AUTHORITY_EVERY, partial(rotation.turn, app.hub)),
        ("tokens", _TOKENS_EVERY, partial(tokens.forget, app.hub)),
    ]
    rotation.watch(app.hub)
    await syncing.learn(app.hub)
    await rotation.begin(app.hub)
    _watch(app)
    return app


def _room(given: Settings, database: Database, vault: Vault) -> Hub:
    ident, clock = new_id(), HubClock()
    asked = given.hub
    limits = detector.Limits(asked.heartbeat_every, asked.suspect_after, asked.dead_after)
    return Hub(
        id=ident,
        settings=asked,
        clock=clock,
        registry=Registry(),
        clusters=hub.ClusterStore(database, ident),
        leases=hub.LeaseStore(database, ident),
        samples=hub.SampleStore(database),
        trust=Trust(asked.trust_domain, hub.AuthorityStore(database, vault), hub.TokenStore(database)),
        documents=hub.DocumentStore(database),
        rollouts=hub.RolloutStore(database),
        attention=detector.Attention(asked.sync_every + 0.5, clock.now()),
        limits=lambda: limits,
    )


def _tell(app: HubApp) -> None:
    """Configuration and policies: known from the database, told to managers, and spread by a work of their own."""
    room = app.hub
    room.on_news.append(partial(learning.learn, room))
    room.settings_for = partial(configuration.desired_for, room)
    room.limits = policies.FederationLimits(room)
    app.works.append(("rollouts", configuration.EVERY, configuration.Driver(room).turn))


def _watch(app: HubApp) -> None:
    hub, figures = app.hub, app.telemetry
    figures.age.set_function(lambda: hub.age)
    for state in get_args(State):
        figures.clusters.labels(state).set_function(
            lambda state=state: hub.inventory.by_state().get(state, 0)  # type: ignore[misc]
        )


def _lock(folder: Path) -> int:
    """SQLite has one hub process."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise AlreadyRunning(
            f"another hub uses {folder}", hint="stop it first; several hubs need PostgreSQL (database.url)"
        ) from None
    return lock
