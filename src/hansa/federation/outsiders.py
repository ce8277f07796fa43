"""OSCAR clusters without a manager of ours: registered by address and credentials, looked after by the hub itself.

Nothing calls out from them, so the periodic work `probes` asks them; an answer counts as their heartbeat.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import structlog

from hansa.federation import acting, addressing
from hansa.federation.errors import ChangedMeanwhile
from hansa.federation.pinning import facts_of
from hansa.federation.ports import NOW, ClusterRecord, Fence, Note, Sighting
from hansa.federation.registry import Known
from hansa.federation.room import Hub
from hansa.identity import Caller
from hansa.kernel import names
from hansa.kernel.errors import Conflict, HansaError, Temporary
from hansa.messages.clusters import Facts, NewOscarCluster
from hansa.messages.members import Health, Totals

_log = structlog.get_logger("hansa.hub")
_AT_ONCE = 32
_WITHIN = 10.0


@dataclass(frozen=True, slots=True)
class Login:
    user: str
    password: str = field(repr=False)


class Outsiders(Protocol):
    """How an OSCAR cluster is asked, and where its credentials are kept."""

    async def ask(self, facts: Facts, login: Login) -> Totals:
        """Raises `Temporary` when it does not answer, another `HansaError` when it refuses."""
        ...

    def sealed(self, cluster: str, login: Login) -> bytes:
        """As the record of this cluster keeps it."""
        ...

    async def login(self, cluster: str) -> Login | None: ...


async def register(hub: Hub, outsiders: Outsiders, caller: Caller, asked: NewOscarCluster) -> Known:
    """Asked at once, so that a wrong address or password is noticed now."""
    acting.require_admin(caller)
    names.cluster(asked.id)
    if hub.registry.get(asked.id) is not None:
        raise Conflict(f"there is a cluster {asked.id} already", hint="choose another id, or remove that one first")
    facts = Facts(
        name=asked.name or asked.id,
        description=asked.description,
        endpoint=addressing.checked(hub, asked.endpoint, asked.id),
        verify=asked.verify,
        region=asked.region,
        zone=asked.zone,
        metadata=asked.metadata,
    )
    login = Login(asked.user, asked.password)
    async with asyncio.timeout(_WITHIN * 2):
        totals = await outsiders.ask(facts, login)
    now = hub.clock.now()
    life = await hub.clusters.lives(asked.id) + 1
    record = ClusterRecord(
        asked.id,
        "oscar",
        "ready",
        now,
        "it answers",
        life,
        now,
        facts,
        endpoint=facts.endpoint,
        verify=facts.verify,
        desired=NOW,
    )
    note = Note(asked.id, "joined", f"OSCAR cluster registered, by {caller.name}")
    # In one transaction: a password that is not of the address beside it would be shown to a stranger.
    written = await hub.clusters.put(record, note, credentials=outsiders.sealed(asked.id, login))
    if written is None:
        raise ChangedMeanwhile(f"somebody else has just registered {asked.id}")
    hub.registry.put(written)
    hub.directory.learn(written)
    _hear(hub, written, {"totals": msgspec.json.encode(totals)})
    return acting.get(hub, asked.id)


async def probe_all(hub: Hub, outsiders: Outsiders, _: Fence) -> None:
    """One round. Who does not answer is not heard, and the detector draws its conclusions."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def probe(record: ClusterRecord) -> None:
        async with turn:
            try:
                async with asyncio.timeout(_WITHIN):
                    login = await outsiders.login(record.id)
                    totals = await outsiders.ask(facts_of(record), login or Login("", ""))
            except (Temporary, TimeoutError):
                return
            except HansaError as error:
                _hear(hub, record, {"health": msgspec.json.encode(Health(missing=(error.message,)))})
                return
            except Exception:  # one that is hostile must not stop what we do for the others
                _log.exception("an OSCAR cluster cannot be asked", cluster=record.id)
                return
            _hear(hub, record, {"totals": msgspec.json.encode(totals), "health": msgspec.json.encode(Health())})

    known = [one.record for one in hub.registry if one.record.kind == "oscar"]
    await asyncio.gather(*(probe(record) for record in known))


def _hear(hub: Hub, record: ClusterRecord, sections: dict[str, bytes]) -> None:
    known = hub.registry.get(record.id)
    if known is None or known.record.incarnation != record.incarnation:
        return  # removed while it was asked
    now = hub.clock.now()
    number = max(int(now * 1000), known.order + 1)
    told = {name: (number, body) for name, body in sections.items()}
    hub.registry.hear(Sighting(record.id, record.incarnation, now, number, told))
