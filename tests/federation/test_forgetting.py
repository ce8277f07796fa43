"""Does a removal leave nothing behind: in no table, in no hub's memory, and not by what another hub does meanwhile?"""

import json
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from federation import small_federation
from federation.small_federation import ADMIN, in_step, join, turn
from hansa import bootstrap
from hansa.bootstrap import HubApp
from hansa.federation import Hub, acting, configuration, heartbeats, history, tokens
from hansa.federation.configuration import changing
from hansa.federation.history import Asked
from hansa.federation.outsiders import Login
from hansa.federation.samples import LEVELS, rolled_up, shard_of, unpack
from hansa.messages.clusters import NewToken
from hansa.messages.configuration import NewDocument, Stages
from hansa.messages.members import Heartbeat, LinkSeen, Totals
from hansa.settings import Settings
from hansa.store.tables import metadata
from real.postgres import Database

GONE = "gdansk"
NEAR = next(name for number in range(10_000) if shard_of(name := f"near-{number}") == shard_of(GONE))
TABLES = [table for table in metadata.sorted_tables if table.name.startswith("hub_")]
# That there was one, and what was told of it, stays: a former life must not be taken for a later one. So do documents,
# which are people's: one that is for this cluster alone (there is none here) goes on saying so.
STAYS = {"hub_removed", "hub_changes"}
HOUR = 3600.0


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    url = "" if request.param == "sqlite" else str(request.getfixturevalue("postgres_database").url)
    return small_federation.settings(tmp_path, database={"url": url})


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[HubApp]:
    async with bootstrap.opened_hub(settings) as opened:
        yield opened


def hear(hub: Hub, source: str, number: int, target: str) -> None:
    known = hub.registry.get(source)
    assert known is not None
    sections = {
        "links": [{**msgspec.to_builtins(LinkSeen(target=target, up=True, since=5.0)), "of_a_newer_manager": 1}],
        "totals": Totals(cpu=1000 * number, nodes=1),
    }
    raw = {name: msgspec.Raw(msgspec.json.encode(said)) for name, said in sections.items()}
    heartbeats.hear(hub, known, Heartbeat(incarnation=known.record.incarnation, number=number, sections=raw))


async def sample(hub: Hub, moment: float) -> bool:
    """Time jumps: what takes hours must not."""
    hub.clock.learn(moment, time.monotonic())
    fence = await hub.leases.hold("history", 60)
    assert fence is not None
    taken = await history.take(hub, fence)
    await hub.leases.release(fence)
    return taken


async def live(app: HubApp) -> None:
    """Leaves traces wherever a cluster can."""
    hub = app.hub
    for name in (GONE, NEAR):
        await join(hub, name)
    await tokens.create(hub, ADMIN, NewToken(cluster=GONE))
    other = await tokens.create(hub, ADMIN, NewToken())
    assert await hub.trust.tokens.use(other.id, cluster=GONE, key="k", life=1)
    known = hub.registry.get(GONE)
    assert known is not None
    assert await hub.clusters.put(known.record, credentials=app.outsiders.sealed(GONE, Login("oscar", "secret")))
    await in_step(hub)
    hear(hub, GONE, 50, NEAR)
    hear(hub, NEAR, 50, GONE)
    await in_step(hub)
    for version in (1, 2):
        said = NewDocument(settings={"jobs": {"cpu": str(version)}}, stages=Stages(canary=1, soak=HOUR))
        await changing.put(hub, ADMIN, "base", said)
        await turn(hub, configuration.Driver(hub))
    rollout = hub.shelf.rollout("base")
    assert rollout is not None
    assert GONE in rollout.given
    more = msgspec.structs.replace(rollout, kept={GONE: 1, NEAR: 1}, failed={GONE: "it was not taken"})
    assert await hub.rollouts.put(more) is not None
    now = hub.clock.now()
    for moment in (now, now + 60):
        assert await sample(hub, moment)
    minutes = await hub.samples.read(60, shard_of(GONE), 0, 2**40)
    assert [GONE in unpack(row.body) for row in minutes] == [True, True]
    coarser = [rolled_up(minutes, level.seconds, int(now // level.seconds)) for level in LEVELS[1:]]
    fence = await hub.leases.hold("history", 60)
    assert fence is not None
    assert await hub.samples.write(fence, 1, coarser, {}, hub.registry.version)
    await hub.leases.release(fence)


async def naming(app: HubApp, cluster: str) -> dict[str, list[Any]]:
    """Rows of every table in which this id occurs."""

    def read(connection: sa.Connection) -> dict[str, list[Any]]:
        rows = {table.name: connection.execute(sa.select(table)).all() for table in TABLES}
        found = {name: [tuple(map(plain, row)) for row in some] for name, some in rows.items()}
        return {name: hits for name, some in found.items() if (hits := [row for row in some if cluster in repr(row)])}

    return await app.database.read(read)


def plain(value: Any) -> Any:
    """As text. Why a rollout stands is told in words, as changes are: they may name whom they were about then."""
    if isinstance(value, bytes | memoryview):
        body = bytes(value)
        return zlib.decompress(body) if body[:1] == b"\x78" else body
    if isinstance(value, str) and value.startswith("{"):
        return {name: one for name, one in json.loads(value).items() if name != "reason"}
    return value


@pytest.mark.parametrize("force", [True, False])
async def test_no_table_knows_it_any_more(app: HubApp, force: bool) -> None:
    hub = app.hub
    await live(app)
    before = await naming(app, GONE)
    assert before.keys() == {
        "hub_changes", "hub_clusters", "hub_credentials", "hub_rollouts", "hub_samples", "hub_sections",
        "hub_sightings", "hub_tokens",
    }  # fmt: skip
    assert {row[0] for row in before["hub_samples"]} == {60, 600, 3600}
    near = await naming(app, NEAR)
    if not force:
        await small_federation.mark(hub, GONE, state="left")
    await acting.remove(hub, ADMIN, GONE, force=force)
    await in_step(hub)
    after = await naming(app, GONE)
    assert after.keys() <= STAYS, {name: rows for name, rows in after.items() if name not in STAYS}
    assert [row[-1] for row in after["hub_changes"]][-1] == "removed, by cluster_admin"
    # and of its neighbour nothing is missing
    assert {name: len(rows) for name, rows in (await naming(app, NEAR)).items() if name != "hub_sections"} == {
        name: len(rows) for name, rows in near.items() if name != "hub_sections"
    }


async def test_one_that_comes_back_has_no_past(app: HubApp) -> None:
    hub = app.hub
    await live(app)
    end = hub.clock.now() + 60
    asked = Asked(end - 3 * HOUR, end, 1000)
    assert (await history.of(hub, Asked(asked.start, end, 1000, GONE))).samples
    await acting.remove(hub, ADMIN, GONE, force=True)
    await in_step(hub)
    hub.clock.learn(end, time.monotonic())
    await join(hub, GONE)
    assert (await history.of(hub, Asked(asked.start, end, 1000, GONE))).samples == ()
    assert (await history.of(hub, Asked(asked.start, end, 1000, NEAR))).samples
    assert (await history.of(hub, asked)).samples, "what it had was the federation's then"


def memory(hub: Hub, cluster: str) -> list[str]:
    """Where in a hub's memory an id occurs."""
    links = [one.id for one in hub.registry if cluster.encode() in one.sections.get("links", (0, b""))[1]]
    rollout = hub.shelf.rollout("base")
    assert rollout is not None
    found = {
        "registry": hub.registry.get(cluster) is not None,
        "links": bool(links) or bool(hub.links.all(cluster)),
        "inventory": hub.inventory.part(cluster) is not None,
        "rollouts": cluster in {*rollout.given, *rollout.kept, *rollout.failed},
        "unsaved": cluster in repr(hub.registry._unsaved),
        "told": cluster in hub.shelf._told,
        "lag": cluster in hub.lag._since,
    }
    return [name for name, there in found.items() if there]


async def test_neither_does_another_hub_nor_what_it_does_before_it_hears(
    postgres_database: Database, tmp_path: Path
) -> None:
    given = small_federation.settings(tmp_path, database={"url": postgres_database.url})
    async with AsyncExitStack() as parts:
        one, two = [await parts.enter_async_context(bootstrap.opened_hub(given)) for _ in range(2)]
        await live(one)
        await in_step(one.hub, two.hub)
        assert {"registry", "links", "rollouts"} <= set(memory(two.hub, GONE))
        stale = two.hub.shelf.rollout("base")
        assert stale is not None
        await acting.remove(one.hub, ADMIN, GONE, force=True)
        # The other has not heard of it, takes the minute's sample, goes on with the rollout, writes what it heard.
        hear(two.hub, GONE, 60, NEAR)
        assert await sample(two.hub, two.hub.clock.now() + 3 * HOUR)
        assert await two.hub.rollouts.put(stale) is None
        await in_step(two.hub, one.hub)
        assert (await naming(one, GONE)).keys() <= STAYS
        assert (memory(one.hub, GONE), memory(two.hub, GONE)) == ([], [])
