"""The part of a manager that deals with other clusters: whom it trusts, what it remembers of them, who works on it."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx

from hansa import services, storage
from hansa.drivers import egress, oscar, s3
from hansa.identity import Vault
from hansa.kernel.clock import Clock
from hansa.services import Delegator, Follower, Room, delegation
from hansa.settings import Settings
from hansa.store import Database, DelegationStore, Facts, OperationStore, ReceiptStore, SightingStore

_REACHED_FOR = 5.0  # seconds
_ANSWERS_WITHIN = 5.0  # seconds
_MOST_OF_AN_ANSWER = 2**20  # bytes that an endpoint of a user's may answer


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


def federating(
    given: Settings, database: Database, vault: Vault, door: egress.Door, clock: Clock, parts: AsyncExitStack
) -> Federating:
    def outward(verify: ssl.SSLContext | bool, own: Collection[egress.Pair]) -> egress.DoorTransport:
        return egress.DoorTransport(
            door, most=_MOST_OF_AN_ANSWER, seconds=given.federation.call_timeout, verify=verify, own=own
        )

    peers = oscar.OscarPeers(
        given.federation,
        own_id=given.cluster.id,
        own_endpoint=own_endpoint(given),
        limits=oscar.Limits(
            call_timeout=given.federation.call_timeout,
            log_answer=given.jobs.log_limit,
        ),
        clock=clock,
        outward=outward,
    )
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


class KeyHolders:
    """Which clusters took keys of their own for replicas, remembered over restarts."""

    _FACT = "federation.key-holders"

    def __init__(self, facts: Facts, known: Collection[str]) -> None:
        self._facts = facts
        self._known = set(known)
        self._turn = asyncio.Lock()

    @classmethod
    async def loaded(cls, facts: Facts) -> "KeyHolders":
        return cls(facts, await facts.get(cls._FACT) or ())

    def known(self, cluster_id: str) -> bool:
        return cluster_id in self._known

    async def add(self, cluster_id: str) -> None:
        if cluster_id in self._known:
            return
        async with self._turn:  # of two that come together neither overwrites the other
            await self._facts.set(self._FACT, sorted({*self._known, cluster_id}))
            self._known.add(cluster_id)  # only now: who calls again after a failure writes it down


class AwayKeys:
    """Keys to our store for a run that is not on this machine: at another cluster, or in a pod."""

    def __init__(self, open_store: s3.OpenStore) -> None:
        self._open_store = open_store

    async def lend(self, name: str, order: services.RunOrder) -> Mapping[str, str]:
        address, loans = self._open_store.store.address, self._open_store.loans
        if loans is None:  # good for a cluster that has this very store, and keys of its own
            return {**address.with_keys(storage.Keys("", "")), "reach": order.reach.to_text()}
        return address.with_keys(await loans.lend(name, order.reach))

    async def end(self, name: str) -> None:
        if self._open_store.loans is not None:
            await self._open_store.loans.end(name)


def checking(
    door: egress.Door, clock: Clock
) -> Callable[[Mapping[str, str], Collection[egress.Pair]], Awaitable[None]]:
    """Does the store another cluster names answer us? Asked without keys, for who answers may not be a store. A yes
    holds for a moment, for jobs come in bursts."""
    reached: dict[tuple[str, str], float] = {}

    async def check(store: Mapping[str, str], own: Collection[egress.Pair]) -> None:
        endpoint, verify = store["endpoint"], store.get("verify", "true").lower()
        now, which = clock.now(), (endpoint, verify)
        for old in [one for one, at in reached.items() if not 0 <= now - at < _REACHED_FOR]:
            del reached[old]
        if which in reached:
            return
        await door.check_url(endpoint, own=own)
        out = egress.DoorTransport(
            door, most=_MOST_OF_AN_ANSWER, seconds=_ANSWERS_WITHIN, verify=verify != "false", own=own
        )
        async with out.client() as http:
            try:
                answer = await http.get(endpoint)
            except httpx.HTTPError as error:
                raise egress.EgressUnreachable(f"it does not answer ({type(error).__name__})") from error
        if answer.status_code in (502, 503, 504):
            raise egress.EgressUnreachable(f"it answers {answer.status_code}")
        reached[which] = now

    return check
