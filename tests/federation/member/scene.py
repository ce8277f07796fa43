"""A manager's membership and a real hub room in one process: the hub's own code, both on databases of their own.

The line between them is this file's, so that it can be cut, and every message crosses it as JSON. Time is moved by
hand. What a manager is, beyond its membership, is the `Cluster` here: it notes what the hub made of it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from pydantic import SecretStr

from hansa import bootstrap
from hansa.federation import (
    ClusterRecord,
    Hub,
    acting,
    desired,
    heartbeats,
    member,
    syncing,
)
from hansa.federation.errors import BadToken, NotAMember
from hansa.federation.member.errors import SettingRefused
from hansa.identity import Caller
from hansa.kernel.errors import Temporary
from hansa.kernel.hub import MembershipSettings
from hansa.messages import Message
from hansa.messages.clusters import Facts
from hansa.messages.members import Desired, Heard, Heartbeat, Joined, Neighbour, Totals
from hansa.settings import AdminSettings, Settings
from hansa.store import Database, make_engine, schema, sqlite_url
from hansa.store.membership import MembershipStore, ReportStore

T = TypeVar("T")
ADMIN = Caller.admin()
LIFE = 1000.0  # seconds of a certificate


@dataclass
class HandClock:
    time: float = 1_000_000.0

    def now(self) -> float:
        return self.time


class CutOff(Temporary):
    """The line is cut."""

    code = "test.cut-off"


def crossing(message: Any, kind: type[T]) -> T:
    """As it arrives on the other side."""
    return msgspec.json.decode(msgspec.json.encode(message), type=kind)


@dataclass
class Line:
    """What `drivers/hub` does over TLS."""

    hub: Hub
    clock: HandClock
    cut: str = ""
    tokens: set[str] = field(default_factory=set)
    approve: bool = True
    roots: str = ""
    sent: list[Heartbeat] = field(default_factory=list)
    goodbyes: list[str] = field(default_factory=list)  # the marks they were said with
    renewals: int = 0
    refuse_renewal: str = ""
    serial: str = ""
    _held: member.Held | None = None

    def held(self) -> member.Held | None:
        return self._held

    async def join(self, hub: str, token: str, cluster: str, facts: Facts) -> Joined:
        self._reach()
        if token not in self.tokens:
            raise BadToken("this token is not known", hint="make a new one")
        self.tokens.discard(token)
        life = await self.hub.clusters.lives(cluster) + 1
        before = self.hub.registry.get(cluster)
        self.serial = f"{cluster}-{life}"
        record = ClusterRecord(
            id=cluster,
            kind="hansa",
            state="ready" if self.approve else "pending",
            since=self.clock.now(),
            reason="it joined",
            incarnation=life,
            joined=self.clock.now(),
            told=facts,
            serials=(self.serial,),
            version=before.record.version if before else 0,
        )
        written = await self.hub.clusters.put(record)
        assert written is not None
        self.hub.registry.put(written)
        await syncing.once(self.hub)
        self._held = member.Held(hub, cluster, life, self.clock.now(), self.clock.now() + LIFE)
        answer = {"incarnation": life, "state": record.state, "trust_domain": "test", "heartbeat_every": 5.0}
        return msgspec.convert({"cluster": cluster, "certificate": "", "roots": "", **answer}, Joined)

    async def renew(self) -> Joined:
        known = self._known()
        if self.refuse_renewal:
            raise Temporary(self.refuse_renewal)
        assert self._held is not None
        self.renewals += 1
        self._held = replace(self._held, issued=self.clock.now(), until=self.clock.now() + LIFE)
        answer = {"certificate": "", "roots": "", "trust_domain": "test", "heartbeat_every": 5.0}
        record = {"cluster": known.id, "incarnation": known.record.incarnation, "state": known.record.state}
        return msgspec.convert({**answer, **record}, Joined)

    async def heartbeat(self, beat: Heartbeat) -> Heard:
        self._reach()
        self.sent.append(beat)
        known = self._known()
        return crossing(heartbeats.hear(self.hub, known, crossing(beat, Heartbeat)), Heard)

    async def desired(self, after: int, wait: float) -> Desired | None:
        known = self._known()
        found = await desired.newer(self.hub, known.id, after, wait)
        return None if found is None else crossing(found, Desired)

    async def leave(self, run: str) -> None:
        self.goodbyes.append(run)
        known = self._known()
        await acting.remove(self.hub, ADMIN, known.id, force=True)

    async def move(self, hub: str) -> None:
        assert self._held is not None
        self._held = replace(self._held, hub=hub)

    async def trust(self, roots: str) -> None:
        self.roots = roots

    async def forget(self) -> None:
        self._held = None

    def _reach(self) -> None:
        if self.cut:
            raise CutOff(self.cut)

    def _known(self) -> Any:
        self._reach()
        if self._held is None:
            raise NotAMember("there is no certificate")
        return heartbeats.member(self.hub, self._held.cluster, self.serial)


@dataclass
class Cluster:
    """The manager as its hub sees and changes it."""

    totals: Totals = field(default_factory=lambda: Totals(nodes=1, cpu=4000))
    gone: list[str] = field(default_factory=list)
    hangs: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    refuse: str = ""
    neighbours: tuple[str, ...] = ()
    duty: tuple[bool, bool] = (False, False)
    work: member.Progress = field(default_factory=lambda: member.Progress(0, 0))
    more: dict[str, Message] = field(default_factory=dict)

    def facts(self) -> Facts:
        return Facts(name="Lübeck", endpoint="http://lubeck.test:8080", version="1.0", speaks=("sections.v1",))

    async def sections(self) -> Mapping[str, Message]:
        return {"totals": self.totals, **self.more}

    async def missing(self) -> Sequence[str]:
        if self.hangs:
            await asyncio.Event().wait()
        return self.gone

    async def apply(self, settings: Mapping[str, Any]) -> None:
        if self.refuse and settings.get("jobs", {}).get("cpu") == "99":
            raise SettingRefused(self.refuse)
        self.settings = dict(settings)

    async def know(self, neighbours: Sequence[Neighbour]) -> None:
        self.neighbours = tuple(sorted(one.id for one in neighbours))

    def set_duty(self, *, cordoned: bool, draining: bool) -> None:
        self.duty = (cordoned, draining)

    async def progress(self) -> member.Progress:
        return self.work

    def talks_to(self) -> frozenset[str]:
        return frozenset()


async def answers_at_once(neighbour: Neighbour, timeout: float) -> float:
    return 0.001


@dataclass
class Scene:
    hub: Hub
    line: Line
    clock: HandClock
    cluster: Cluster
    database: Database
    given: MembershipSettings
    agent: member.Membership
    _announced: float = 0.0

    async def restart(self, **settings: Any) -> None:
        """The manager's process begins anew on what it kept."""
        self.given = self.given.model_copy(update=settings)
        self.cluster.settings, self.cluster.neighbours, self.cluster.duty = {}, (), (False, False)
        self.agent = _agent(self.given, self.line, self.database, self.cluster, self.clock)
        await self.agent.open()

    async def join(self) -> None:
        self.line.tokens.add("a token")
        await self.agent.join("https://hub.test:7443", "a token")

    async def beat(self) -> Heard | None:
        found = await self.agent._session.beat()
        await syncing.once(self.hub)
        return found

    async def look(self) -> bool:
        """Asks the hub what is new, once it has told itself."""
        await syncing.once(self.hub)
        self._announced += 60
        self.hub.directory.announce(self.hub.clock.now() + self._announced, self.hub.registry.version)
        return await self.agent._session.look(0)

    async def neighbour(self, ident: str) -> None:
        record = ClusterRecord(
            id=ident,
            kind="hansa",
            state="ready",
            since=0.0,
            reason="",
            incarnation=1,
            joined=0.0,
            told=Facts(endpoint=f"http://{ident}.test"),
        )
        assert await self.hub.clusters.put(record) is not None


def _agent(
    given: MembershipSettings, line: Line, database: Database, cluster: Cluster, clock: HandClock
) -> member.Membership:
    return member.Membership(
        "lubeck",
        given,
        line=line,
        memory=MembershipStore(database),
        reports=ReportStore(database, given.most_reports),
        cluster=cluster,
        probe=answers_at_once,
        clock=clock,
    )


@asynccontextmanager
async def database_in(folder: Path) -> AsyncIterator[Database]:
    folder.mkdir()
    engine = make_engine(sqlite_url(folder))
    schema.upgrade(engine)
    opened = Database(engine)
    opened.start()
    try:
        yield opened
    finally:
        await opened.close()


@asynccontextmanager
async def opened_scene(folder: Path) -> AsyncIterator[Scene]:
    given = Settings(role="hub", data=folder / "hub", admin=AdminSettings(password=SecretStr("not asked for")))
    async with bootstrap.opened_hub(given) as app, database_in(folder / "manager") as managers:
        room = app.hub
        time = HandClock()
        line, cluster, own = Line(room, time), Cluster(), MembershipSettings()
        agent = _agent(own, line, managers, cluster, time)
        await agent.open()
        yield Scene(room, line, time, cluster, managers, own, agent)


@asynccontextmanager
async def working(agent: member.Membership) -> AsyncIterator[None]:
    task = asyncio.create_task(agent.work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
