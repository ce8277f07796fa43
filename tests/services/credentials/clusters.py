"""Clusters for tests of credentials: real stores, a real identity provider, real HTTP between the managers.

Each `Cluster` is the part of a manager that deals with credentials, behind its own address on loopback. Time is moved
by hand, so that access tokens expire without anybody waiting.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError

from drivers.oidc.hand_clock import HandClock
from hansa import storage
from hansa.drivers.oidc import OidcExchange, Policy
from hansa.drivers.oscar import OscarPeers
from hansa.entrypoints.http import context, problems
from hansa.entrypoints.http.v1 import tokens
from hansa.identity import Caller, Identity, Vault
from hansa.kernel.errors import HansaError
from hansa.kernel.federation import FederationSettings, KnownCluster
from hansa.kernel.issuer import IssuerSettings
from hansa.services import ClusterRef, Federation, Member, Record, Service
from hansa.services.credentials import Keyring, TokenExchange
from hansa.services.service import FEDERATION_WORKER, ORIGIN_CLUSTER, ORIGIN_SERVICE, Environment
from hansa.store import AuditStore, Database, LineageStore, ServiceStore, make_engine, schema
from hansa.store.buckets import BucketStore
from hansa.store.people import PeopleStore

CLIENT = "hansa-tests"
OWNER = "alice@test"
GROUP_KEY = "ab" * 32
POLICY = Policy(time_limit=3.0)
TOKEN = "environment.secrets.refresh_token"
KEY = "environment.secrets.hansa.group-key"


@dataclass(frozen=True)
class Rooms:
    records: ServiceStore
    keyring: Keyring


@dataclass
class Cluster:
    id: str
    url: str
    database: Database
    records: ServiceStore
    people: storage.People
    audit: AuditStore
    lineages: LineageStore
    keyring: Keyring
    clock: HandClock

    @property
    def room(self) -> Rooms:
        return Rooms(self.records, self.keyring)

    async def sign_in(self, issuer: str, uid: str = OWNER) -> None:
        await self.people.ensure(Caller.user(Identity(uid, issuer, uid, frozenset(), 0.0), uid))

    async def add(self, service: Service, secrets: Mapping[str, str]) -> Service:
        now = self.clock.now()
        await self.records.add(Record(service, 1, "ready", False, (), now, now), secrets)
        return service

    async def with_token(self, name: str, token: str, owner: str = OWNER, **more: Any) -> Service:
        """A federated service as its coordinator keeps it."""
        environment = Environment(secrets={"refresh_token": ""})
        service = Service(name=name, image="i", script="true", owner=owner, environment=environment, **more)
        return await self.add(service, {TOKEN: token, KEY: GROUP_KEY, "clusters.visby.auth_password": "pw"})

    async def replica(self, name: str, origin: "Cluster", service: str, token: str) -> Service:
        """A member of a mesh: it has a copy of the refresh token, as OSCAR's members do."""
        replica = Service(
            name=name,
            image="i",
            script="true",
            owner=OWNER,
            cluster_id=self.id,
            clusters={origin.id: ClusterRef(endpoint=origin.url)},
            annotations={ORIGIN_CLUSTER: origin.id, ORIGIN_SERVICE: service, FEDERATION_WORKER: "true"},
            federation=Federation(group_id=service, topology="mesh", members=(Member(type="oscar"),)),
        )
        return await self.add(replica, {TOKEN: token, KEY: GROUP_KEY})

    async def headers(self, service: Service, cluster: str = "visby", caller: str = "") -> list[str]:
        return [one.authorization for one in await self.keyring.credentials(service, cluster, caller=caller)]

    async def bearer(self, service: Service) -> str:
        """The access token shown to peers; "" if there is none."""
        found = [one for one in await self.headers(service) if one.startswith("Bearer ")]
        return found[0].removeprefix("Bearer ") if found else ""


def issuer_settings(url: str, **more: Any) -> IssuerSettings:
    return IssuerSettings(url=url, audience=("*",), client_id=CLIENT, **more)


@asynccontextmanager
async def opened_database(url: str, patience: float = 8.0) -> AsyncIterator[Database]:
    engine = make_engine(url)
    schema.upgrade(engine)
    database = Database(engine, patience)
    database.start()
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def cluster(
    database_url: str,
    *issuers: IssuerSettings,
    ident: str = "lubeck",
    known: Mapping[str, str] | None = None,
    vault: Vault | None = None,
    clock: HandClock | None = None,
    exchange: TokenExchange | None = None,
    serve: bool = False,
    policy: Policy = POLICY,
    **settings: Any,
) -> AsyncIterator[Cluster]:
    """`known` are the addresses of other clusters it trusts."""
    clock = clock or HandClock()
    vault = vault or VAULT
    async with AsyncExitStack() as parts:
        database = await parts.enter_async_context(opened_database(database_url))
        records = ServiceStore(database, vault)
        await records.load()
        grants = storage.Grants(None, storage.BucketRegister(BucketStore(database)))
        people = storage.People(PeopleStore(database), grants, vault, "oscar-svc", clock)
        await people.load()
        http = await parts.enter_async_context(httpx.AsyncClient(trust_env=False))
        trusted = {name: KnownCluster(endpoint=url) for name, url in (known or {}).items()}
        peers = OscarPeers(FederationSettings(clusters=trusted, call_timeout=5.0), own_id=ident, clock=clock)
        parts.push_async_callback(peers.close)
        audit, lineages = AuditStore(database), LineageStore(database, vault)
        keyring = Keyring(
            records=records,
            lineages=lineages,
            exchange=exchange or OidcExchange(issuers, http, policy=policy, clock=clock, ticks=clock.ticks),
            owners=people,
            audit=audit,
            peers=peers,
            clock=clock,
            **settings,
        )
        parts.push_async_callback(keyring.close)
        made = Cluster(ident, "", database, records, people, audit, lineages, keyring, clock)
        if serve:
            made.url = await parts.enter_async_context(served(application(made)))
        yield made


VAULT = Vault([Vault.new_key()])


def application(made: Cluster) -> FastAPI:
    """The door of credentials. Who asks is said by the header `X-Test-User`: sign-in has tests of its own."""

    def caller(request: Request) -> Caller:
        user = request.headers.get("x-test-user", "")
        return Caller(kind="user", uid=user, name=user, subject=user) if user else Caller.admin()

    api = FastAPI(redirect_slashes=False)
    api.state.hansa = made
    api.include_router(tokens.router)
    api.dependency_overrides[context.caller_of] = caller
    api.add_exception_handler(HansaError, problems.as_answer)
    api.add_exception_handler(RequestValidationError, problems.as_validation_answer)
    return api


@asynccontextmanager
async def served(api: FastAPI) -> AsyncIterator[str]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(api, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve([listening]), name="door")
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await asyncio.wait_for(task, 10)
        listening.close()
