"""What cannot be written down of one cluster: the others are written down, and the hub says when nothing can be."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from federation import small_federation
from federation.small_federation import join, judge, later
from hansa import bootstrap
from hansa.federation import Hub, Note, Sighting, acting, heartbeats, lifecycle, syncing
from hansa.messages.members import Heard, Heartbeat, Report
from hansa.store.hub import ClusterStore
from real.postgres import Database

UNWRITABLE = 2**70  # no database holds such a number


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with bootstrap.opened_hub(small_federation.settings(tmp_path)) as app:
        await _three(app.hub)
        yield app.hub


async def _three(hub: Hub) -> None:
    for name in ("lubeck", "riga", "visby"):
        await join(hub, name)
    await syncing.once(hub)


async def _written(hub: Hub) -> dict[str, Sighting]:
    """What another hub would read."""
    assert isinstance(hub.clusters, ClusterStore)
    other = ClusterStore(hub.clusters._database, "another")
    return {one.cluster: one for one in (await other.news(0)).sightings}


def hear(hub: Hub, name: str, sections: dict[str, bytes], **more: Any) -> Heard:
    known = acting.get(hub, name)
    raw = {section: msgspec.Raw(body) for section, body in sections.items()}
    beat = Heartbeat(incarnation=known.record.incarnation, number=known.number + 1, sections=raw, **more)
    return heartbeats.hear(hub, known, beat)


async def test_what_cannot_be_written_of_one_is_written_of_the_others(hub: Hub) -> None:
    later(hub, 10)
    now = hub.clock.now()
    said = ((1, Note("riga", "job", "never written", 3.0)),)
    for name, number in (("lubeck", 70), ("riga", UNWRITABLE), ("visby", 71)):
        hub.registry.hear(Sighting(name, 1, now, number, reports=said if name == "riga" else ()))
    await syncing.once(hub)
    found = await _written(hub)
    assert (found["lubeck"].number, found["visby"].number) == (70, 71)
    hub.registry.hear(Sighting("riga", 1, now + 1, 72))
    await syncing.once(hub)
    assert (await _written(hub))["riga"].number == 72  # what was spoiled does not come again


async def test_what_cannot_be_judged_on_paper_keeps_nobody_from_it(hub: Hub) -> None:
    known = acting.get(hub, "riga")
    hub.registry.put(replace(known.record, refused="\ud800"))
    later(hub, 3600)
    await judge(hub)
    states = {known.id: known.record.state for known in hub.registry}
    assert states == {"lubeck": "unreachable", "riga": "ready", "visby": "unreachable"}


async def test_control_characters_reach_no_row(postgres_database: Database, tmp_path: Path) -> None:
    given = small_federation.settings(tmp_path, database={"url": postgres_database.url})
    async with bootstrap.opened_hub(given) as app:
        hub = app.hub
        await _three(hub)
        report = Report(number=1, at=1.0, kind="x\0", detail="a\0b")
        hear(hub, "riga", {"a\0b": b"1", "own": b"1"}, run="r\0", reports=(report,))
        await syncing.once(hub)
        assert [one.detail for one in await hub.clusters.changes(cluster="riga") if one.at == 1.0] == ["a\ufffdb"]
        found = (await _written(hub))["riga"]
        assert (found.run, "own" in found.sections, "a\0b" in found.sections) == ("r\ufffd", True, False)
        hear(hub, "riga", {"health": b'{"missing":["a\\u0000b"]}', "applied": b'{"error":"c\\u0000d"}'})
        await judge(hub)
        reason = acting.get(hub, "riga").record.reason
        assert reason == "a\ufffdb; its configuration was not taken: c\ufffdd"


async def test_a_reason_has_an_end(hub: Hub) -> None:
    many = msgspec.json.encode({"missing": [f"part {number} {'x' * 5000}" for number in range(200)]})
    hear(hub, "riga", {"health": many, "applied": msgspec.json.encode({"error": "y" * 2**20})})
    await judge(hub)
    record = acting.get(hub, "riga").record
    assert record.reason.startswith("part 0 x")
    assert len(record.reason) == lifecycle.LONGEST
    assert max(len(one.detail) for one in await hub.clusters.changes()) < 2 * lifecycle.LONGEST


class Broken:
    """A registry's rows that cannot be read, for a reason that nobody has thought of."""

    async def news(self, after: int) -> Any:
        raise ValueError(after)


async def test_a_hub_that_is_not_in_step_says_so(tmp_path: Path) -> None:
    async with bootstrap.opened_hub(small_federation.settings(tmp_path)) as app:
        app.hub.clusters = Broken()  # type: ignore[assignment]
        with pytest.raises(ValueError, match="0"):
            async with asyncio.timeout(30):
                await syncing.keep(app.hub)
        assert await app.missing_parts() == ["database: it cannot be kept in step; the log says why"]


async def test_reports_have_a_rate_and_none_is_lost(hub: Hub) -> None:
    """What is more than a cluster may report now is not acknowledged, and so comes again."""

    def said(first: int, count: int) -> tuple[Report, ...]:
        return tuple(Report(number=one, at=float(one), kind="job") for one in range(first, first + count))

    for first in (1, 1001):
        hear(hub, "riga", {}, reports=said(first, 1000))
        hear(hub, "riga", {}, reports=said(first, 1000))  # the same again, before they are written down
    await syncing.once(hub)
    over = said(2001, 1000)
    hear(hub, "riga", {}, reports=over)
    await syncing.once(hub)
    assert 2000 <= hear(hub, "riga", {}).received < 3000
    later(hub, 600)
    hear(hub, "riga", {}, reports=over)
    await syncing.once(hub)
    assert hear(hub, "riga", {}).received == 3000
