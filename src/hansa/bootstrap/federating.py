"""The part of a manager that deals with other clusters: whom it trusts, what it remembers of them, who works on it."""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from hansa import services, storage
from hansa.drivers import oscar, s3
from hansa.identity import ADMIN_UID, Caller, Vault
from hansa.kernel.clock import Clock
from hansa.kernel.errors import NotFound
from hansa.services import Delegator, Follower, Room, delegation
from hansa.settings import Settings
from hansa.store import Database, DelegationStore, OperationStore, ReceiptStore, SightingStore

_REACHED_FOR = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Federating:
    """What a `Room` needs to act beyond this cluster."""

    peers: oscar.OscarPeers
    operations: OperationStore
    delegations: DelegationStore
    receipts: ReceiptStore
    prober: delegation.Prober
    sightings: SightingStore

    def for_room(self) -> dict[str, Any]:
        return {
            "peers": self.peers,
            "operations": self.operations,
            "delegations": self.delegations,
            "receipts": self.receipts,
            "prober": self.prober,
            "sightings": self.sightings,
        }

    async def load(self) -> None:
        await self.receipts.load()
        await self.sightings.load()


def own_endpoint(given: Settings) -> str:
    """How other clusters reach this manager."""
    return (given.cluster.public_url or f"http://{given.http.host}:{given.http.port}").rstrip("/")


def federating(given: Settings, database: Database, vault: Vault, clock: Clock, parts: AsyncExitStack) -> Federating:
    peers = oscar.OscarPeers(given.federation, own_id=given.cluster.id, own_endpoint=own_endpoint(given), clock=clock)
    parts.push_async_callback(peers.close)
    prober = delegation.Prober(clock, ttl=given.federation.probe_ttl, timeout=given.federation.probe_timeout)
    parts.push_async_callback(prober.close)
    return Federating(
        peers=peers,
        operations=OperationStore(database, vault),
        delegations=DelegationStore(database, vault),
        receipts=ReceiptStore(database, vault),
        prober=prober,
        sightings=SightingStore(database),
    )


def delegator(given: Settings, room: Room, follower: Follower) -> Delegator:
    return Delegator(
        room,
        threshold=given.federation.rescheduler_threshold,
        patience=given.federation.handover_patience,
        hop_limit=given.federation.hop_limit,
        formula=given.federation.load_formula,
        on_gone=follower.wake,
    )


def follower(given: Settings, room: Room) -> Follower:
    return Follower(room, lost_after=given.federation.lost_after)


class DelegatedKeys:
    """Store keys for the cluster that runs a job for us: its owner's own, or, since the admin's open everything, those
    of a store user that reaches this service's buckets only."""

    def __init__(self, open_store: s3.OpenStore, people: storage.People, records: services.Services) -> None:
        self._open_store = open_store
        self._people = people
        self._records = records

    async def with_address(self, service: str, owner: str) -> dict[str, str]:
        """As a provider of storage, for whoever reaches the store by its public address."""
        return self._open_store.store.address.with_keys(await self.of(service, owner))

    async def of(self, service: str, owner: str) -> storage.Keys:
        if owner != ADMIN_UID and self._people.knows(owner):
            return await self._people.keys(Caller(kind="user", uid=owner, name=owner))
        record = self._records.get(service)
        if record is None:
            raise NotFound(f"service {service} is gone")
        name = f"service-{service}"
        root = self._open_store.keys.secret_key.encode()
        # derived, so it is the same after every restart and needs no place to be kept
        secret = hmac.new(root, f"delegated {record.service.token}".encode(), hashlib.sha256).hexdigest()[:40]
        keys = storage.Keys.of_user(name, secret)
        await self._open_store.users.ensure_user(keys)
        await self._open_store.users.grant(keys.access_key, services.creation.buckets_of(record.service))
        return keys


def checking(
    open_foreign: Callable[[str, Mapping[str, Any]], storage.ObjectStore],
    clock: Clock,
) -> Callable[[Mapping[str, str]], Awaitable[None]]:
    """Can the store another cluster names be reached from here? A yes holds for a moment, for jobs come in bursts and
    to open a store is slow."""
    reached: dict[tuple[tuple[str, str], ...], float] = {}

    async def check(store: Mapping[str, str]) -> None:
        now, which = clock.now(), tuple(sorted(store.items()))
        for old in [one for one, at in reached.items() if not 0 <= now - at < _REACHED_FOR]:
            del reached[old]
        if which in reached:
            return
        opened = open_foreign("minio", store)
        try:
            await opened.check()
            reached[which] = now
        finally:
            await opened.close()

    return check
