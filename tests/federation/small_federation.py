"""A hub in this process on a real database, and clusters of it that take what they are told, or do not.

Their managers' part is played here, by the hub's own doors behind TLS: they ask what they should know, and report.
"""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from hansa.federation import ClusterRecord, Hub, configuration, desired, heartbeats, judging, syncing
from hansa.identity import Caller
from hansa.messages.clusters import Facts
from hansa.messages.members import Applied, Desired, Health, Heartbeat
from hansa.settings import Settings

ADMIN = Caller.admin()
SOMEBODY = Caller(kind="user", uid="ann@test", name="Ann")


def settings(folder: Any, **more: Any) -> Settings:
    return Settings.model_validate({"data": folder, "role": "hub", "admin": {"password": "x"}, **more})


@dataclass
class Manager:
    """One cluster's side."""

    hub: Hub
    name: str
    number: int = 0
    applied: Applied = field(default_factory=Applied)
    health: Health = field(default_factory=Health)
    refuses: str = ""  # why it takes nothing new
    settings: dict[str, Any] = field(default_factory=dict)

    def follow(self) -> bool:
        """Asks for news, takes it, and reports; whether there was any."""
        found = self.asked()
        if found is not None:
            if self.refuses and found.documents != self.applied.documents:
                self.applied = msgspec.structs.replace(
                    self.applied, generation=found.generation, error=self.refuses, tried=found.documents
                )
            else:
                self.settings = found.settings
                self.applied = Applied(generation=found.generation, documents=found.documents)
        self.report()
        return found is not None

    def asked(self) -> Desired | None:
        if desired.generation(self.hub, self.name) <= self.applied.generation:
            return None
        told = msgspec.json.encode(desired.of(self.hub, self.name, self.applied.generation))
        return msgspec.json.decode(told, type=Desired)

    def report(self) -> None:
        known = self.hub.registry.get(self.name)
        assert known is not None
        self.number += 1
        sections = {"applied": self.applied, "health": self.health}
        raw = {name: msgspec.Raw(msgspec.json.encode(said)) for name, said in sections.items()}
        heartbeats.hear(
            self.hub, known, Heartbeat(incarnation=known.record.incarnation, number=self.number, sections=raw)
        )

    def has(self, document: str) -> int:
        return next((one.version for one in self.applied.documents if one.name == document), 0)


async def join(hub: Hub, name: str, **facts: Any) -> Manager:
    now = hub.clock.now()
    life = await hub.clusters.lives(name) + 1
    told = Facts(**{"name": name, **facts})
    serials = (f"{name}-{life}",)
    record = ClusterRecord(
        name, "hansa", "ready", now, "it joined", life, now, told, endpoint=told.endpoint, serials=serials
    )
    written = await hub.clusters.put(record)
    assert written is not None
    await learn(hub)
    manager = Manager(hub, name)
    manager.follow()
    return manager


def later(hub: Hub, seconds: float) -> None:
    hub.clock.learn(hub.clock.now() + seconds, time.monotonic())


async def learn(hub: Hub) -> None:
    """All that was written, at whatever time it is by `later`."""
    now = hub.clock.now()
    await syncing.learn(hub)
    hub.clock.learn(now, time.monotonic())


async def turn(hub: Hub, driver: configuration.Driver) -> None:
    """One turn of the work under its lease."""
    fence = await hub.leases.hold("rollouts", 60)
    assert fence is not None
    await driver.turn(fence)
    await learn(hub)


async def judge(hub: Hub) -> None:
    fence = await hub.leases.hold("detector", 60)
    assert fence is not None
    await judging.all_clusters(hub, fence)
    await learn(hub)


async def mark(hub: Hub, name: str, **changes: Any) -> None:
    """The record, changed as some action would."""
    known = hub.registry.get(name)
    assert known is not None
    written = await hub.clusters.put(replace(known.record, **changes))
    assert written is not None
    await learn(hub)


async def in_step(*hubs: Hub) -> None:
    for hub in hubs:
        await syncing.once(hub)
