"""What the hub makes of heartbeats of two programs with one key: neither shuts the other out, and both are noticed."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from federation import small_federation
from federation.small_federation import in_step, judge
from hansa import bootstrap
from hansa.federation import Hub, Known, acting, heartbeats, joining, syncing
from hansa.messages.members import Heard, Heartbeat, Report, Totals
from real.postgres import Database

HUGE = 2**62


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with bootstrap.opened_hub(small_federation.settings(tmp_path)) as app:
        await small_federation.join(app.hub, "visby")
        yield app.hub


def visby(hub: Hub) -> Known:
    return acting.get(hub, "visby")


def hear(hub: Hub, number: int, *, cpu: int = 0, serial: str = "", **more: Any) -> Heard:
    known = visby(hub)
    sections = {"totals": msgspec.Raw(msgspec.json.encode(Totals(cpu=cpu)))} if cpu else {}
    beat = Heartbeat(incarnation=known.record.incarnation, number=number, sections=sections, **more)
    return heartbeats.hear(hub, known, beat, serial)


async def test_what_came_last_counts_whatever_its_number(hub: Hub) -> None:
    hear(hub, 10, cpu=1000, run="real", whole=True)
    hear(hub, HUGE, cpu=7, run="copy")
    assert visby(hub).totals.cpu == 7
    hear(hub, 11, cpu=1000, run="real", answered=10)
    assert visby(hub).totals.cpu == 1000
    hear(hub, HUGE, cpu=7)
    hear(hub, 12, cpu=1000)
    assert visby(hub).totals.cpu == 1000  # also of managers that send no mark


async def test_after_another_was_heard_everything_is_asked_for(hub: Hub) -> None:
    hear(hub, 10, cpu=1000, run="real", whole=True)
    assert not hear(hub, 11, run="real", answered=10).whole
    hear(hub, HUGE, cpu=7, run="copy")
    assert hear(hub, 12, run="real", answered=11).whole  # so that what the other said does not stay
    assert not hear(hub, 13, cpu=1000, run="real", answered=12, whole=True).whole
    assert not hear(hub, 14, run="real", answered=13).whole


async def test_what_was_overtaken_on_its_way_changes_nothing(hub: Hub) -> None:
    hear(hub, 10, cpu=1, run="real", whole=True)
    hear(hub, 12, cpu=3, run="real", answered=10)
    hear(hub, 11, cpu=2, run="real", answered=10)
    assert visby(hub).totals.cpu == 3


async def test_reports_are_written_down_and_acknowledged_each_to_its_sender(hub: Hub) -> None:
    forged = Report(number=HUGE, at=1.0, kind="job", detail="forged")
    hear(hub, 1, run="copy", reports=(forged,))
    await syncing.once(hub)
    assert hear(hub, 2, run="copy", reports=(forged,)).received == HUGE
    real = tuple(Report(number=number, at=2.0, kind="job", detail=f"report {number}") for number in (7, 8))
    for number in (10, 11):
        heard = hear(hub, number, run="real", reports=real)
        await syncing.once(hub)
    assert heard.received == 8  # not what it has not sent yet
    told = [one.detail for one in await hub.clusters.changes() if one.kind == "job"]
    assert sorted(told) == ["forged", "report 7", "report 8"]


async def test_two_are_noticed_by_two_hubs_that_hear_one_each(postgres_database: Database, tmp_path: Path) -> None:
    given = small_federation.settings(tmp_path, database={"url": postgres_database.url})
    async with AsyncExitStack() as parts:
        one, two, third = [(await parts.enter_async_context(bootstrap.opened_hub(given))).hub for _ in range(3)]
        await small_federation.join(one, "visby")
        await in_step(two, third)
        for turn in range(6):
            hear(one, 100 + turn, cpu=1000, run="real", answered=99 + turn)
            await in_step(one, two, third)
            hear(two, HUGE - turn, cpu=7, run="copy")
            await in_step(two, one, third)
        await judge(third)  # which heard neither
        for hub in (one, two):
            await in_step(hub)
            assert visby(hub).record.state == "degraded"
            assert "more than one program reports with its key" in visby(hub).record.reason


async def test_certificates_in_use_are_known_to_hubs_that_did_not_see_them(
    postgres_database: Database, tmp_path: Path
) -> None:
    given = small_federation.settings(tmp_path, database={"url": postgres_database.url})
    async with AsyncExitStack() as parts:
        one, two = [(await parts.enter_async_context(bootstrap.opened_hub(given))).hub for _ in range(2)]
        await small_federation.join(one, "visby")
        await in_step(two)
        hear(one, 1, whole=True, run="real", serial="s0")
        await in_step(one, two)
        small_federation.later(two, 3000)  # it goes on showing that one, which is no news
        assert visby(two).certificates(two.clock.now()) == {"s0"}
        hear(two, 1, run="copy", serial="t1")
        hear(one, 2, run="real", serial="s0")
        await in_step(two, one)
        assert visby(two).certificates(two.clock.now()) == {"s0", "t1"}
        assert joining.kept(("s0", "t1"), "t1", "t2", visby(two).certificates(two.clock.now())) == ("s0", "t1", "t2")


async def test_a_manager_of_an_older_version_is_one(hub: Hub) -> None:
    """It sends no mark; its numbers grow, also over its restarts."""
    known = visby(hub)
    for number in range(1, 30):
        body = msgspec.json.encode({"incarnation": known.record.incarnation, "number": number, "answered": number - 1})
        heard = heartbeats.hear(hub, known, msgspec.json.decode(body, type=Heartbeat))
        assert heard.whole == (number == 1 or not known.complete)
    await judge(hub)
    assert known.record.state == "ready"
