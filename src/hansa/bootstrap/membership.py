"""A running manager as its hub may know and change it: implements the port `federation.member.Cluster`."""

import asyncio
import itertools
import shutil
import socket
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import structlog

from hansa import __version__, services
from hansa.bootstrap import federating
from hansa.bootstrap.app import App
from hansa.bootstrap.applying import Applying
from hansa.drivers import hub, oscar
from hansa.federation import member
from hansa.kernel.errors import HansaError
from hansa.messages import Message
from hansa.messages.clusters import Abilities, Coordinates, Cost, Facts
from hansa.messages.members import SPEAKS, Neighbour, Node, Totals
from hansa.settings import Settings
from hansa.store.membership import MembershipStore, ReportStore

_log = structlog.get_logger("hansa.membership")
_ADD_UP_EVERY = 60.0  # seconds
_COUNT_EVERY = 600.0  # seconds between two counts of one bucket for the hub alone: they cost listings
_MOST_NAMED = 5  # clusters in one line of the log
_STEPS = 100  # the disk's use is told in steps, for it changes all the time


def facts_of(given: Settings) -> Facts:
    """What this cluster registers of itself."""
    own = given.membership
    where = None
    if own.latitude is not None and own.longitude is not None:
        where = Coordinates(latitude=own.latitude, longitude=own.longitude)
    return Facts(
        name=own.name or given.cluster.id,
        description=own.description,
        endpoint=federating.own_endpoint(given),
        region=own.region,
        zone=own.zone,
        coordinates=where,
        metadata=dict(own.metadata),
        abilities=Abilities(services=True),
        cost=Cost(cpu_hour=own.cpu_hour, memory_hour=own.memory_hour),
        version=__version__,
        speaks=SPEAKS,
    )


class Hold:
    def __init__(self, app: App, peers: oscar.OscarPeers) -> None:
        self._app = app
        self._peers = peers
        self._applying = Applying(app)
        self._data: Path = app.settings.data.absolute()
        self._stored = 0
        self._counted = float("-inf")
        self._counting: asyncio.Task[None] | None = None
        self._odd: tuple[int, dict[str, str]] = (0, {})

    def facts(self) -> Facts:
        return facts_of(self._app.settings)

    async def sections(self) -> Mapping[str, Message | Sequence[Message]]:
        app = self._app
        ledger, dispatcher = app.admission.ledger, app.room.dispatcher
        used = ledger.promised
        disk = shutil.disk_usage(self._data)  # at once: threads may all be busy with files of tenants
        step = max(1, disk.total // _STEPS)
        self._count_now_and_then()
        seen = app.nodes.look()
        alone = len(seen) == 1 and seen[0].name == socket.gethostname()  # then our disk is the node's
        nodes = [
            Node(
                name=one.name,
                ready=one.ready,
                cpu=one.cpu,
                cpu_used=one.cpu_requested,
                memory=one.memory,
                memory_used=one.memory_requested,
                gpu=one.gpus,
                disk=disk.total if alone else 0,
                disk_used=disk.used // step * step if alone else 0,
            )
            for one in seen
        ]
        totals = Totals(
            nodes=len(nodes),
            nodes_ready=sum(one.ready for one in nodes),
            cpu=ledger.cpu,
            cpu_used=used.cpu,
            memory=ledger.memory,
            memory_used=used.memory,
            disk=disk.total,
            disk_used=disk.used // step * step,
            services=len(app.room.records.all()),
            jobs_running=dispatcher.running,
            jobs_waiting=dispatcher.waiting,
            storage_used=self._stored,
        )
        return {"totals": totals, "nodes": nodes, "facts": self.facts()}

    async def missing(self) -> Sequence[str]:
        return await self._app.missing_parts()

    async def apply(self, settings: Mapping[str, Any]) -> None:
        self._applying.apply(settings)

    async def know(self, neighbours: Sequence[Neighbour]) -> None:
        others = [one for one in neighbours if one.id != self._app.settings.cluster.id]
        told = [services.peers.Address(one.id, one.endpoint, one.verify, one.kind) for one in others]
        self._complain(await self._peers.know(told))

    def _complain(self, odd: Mapping[str, str]) -> None:
        """Once, until it is about others. A hub may tell of thousands, again and again."""
        first = dict(itertools.islice(sorted(odd.items()), _MOST_NAMED))
        if odd and (len(odd), first) != self._odd:
            _log.warning("clusters whose address cannot be trusted", count=len(odd), clusters=first)
        self._odd = (len(odd), first)

    def set_duty(self, *, cordoned: bool, draining: bool) -> None:
        duty = self._app.room.duty
        began = draining and not duty.draining
        duty.cordoned, duty.draining = cordoned, draining
        if began:
            self._app.delegator.hurry()
        self._app.room.dispatcher.wake()

    async def progress(self) -> member.Progress:
        found = await services.duty.workload(self._app.room)
        return member.Progress(found.running, found.waiting)

    def talks_to(self) -> frozenset[str]:
        own = self._app.settings.cluster.id
        named = {
            one.cluster_id
            for record in self._app.room.records.all()
            for one in services.replicas.oscar_members(record.service.federation)
        }
        return frozenset(named - {own})

    async def probe(self, neighbour: Neighbour, timeout: float) -> float:
        return await self._peers.ping(neighbour.id, timeout)

    async def close(self) -> None:
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.gather(self._counting, return_exceptions=True)

    def _count_now_and_then(self) -> None:
        now = self._app.clock.now()
        if not 0 <= now - self._counted < _ADD_UP_EVERY and (self._counting is None or self._counting.done()):
            self._counted = now
            self._counting = asyncio.create_task(self._count(), name="count what is stored")

    async def _count(self) -> None:
        try:
            names = [bucket.name for bucket in self._app.register]
            counts = [await self._app.accounting.of(name, good_for=_COUNT_EVERY) for name in names]
            self._stored = sum(one.size for one in counts)
        except HansaError as error:
            _log.info("what is stored is not counted", error=error.message)


def membership(app: App, peers: oscar.OscarPeers, data: Path, parts: AsyncExitStack) -> member.Membership:
    """The manager's place in a federation; `open` it before it serves."""
    line = hub.HubLine(data / "membership", clock=app.clock)
    parts.push_async_callback(line.close)
    hold, figures = Hold(app, peers), app.telemetry
    parts.push_async_callback(hold.close)
    found = member.Membership(
        app.settings.cluster.id,
        app.settings.membership,
        line=line,
        memory=MembershipStore(app.database),
        reports=ReportStore(app.database, app.settings.membership.most_reports),
        cluster=hold,
        probe=hold.probe,
        clock=app.clock,
        on_beat=lambda answered: figures.heartbeats.labels("answered" if answered else "failed").inc(),
    )

    def silent_for() -> float:
        if found.state in ("none", "left"):
            return 0.0
        return max(0.0, app.clock.now() - (found.last_answer or app.started))

    figures.hub_silence.set_function(silent_for)
    return found
