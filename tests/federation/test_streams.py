"""Does everybody who looks see what changed, in order, as often as it helps and never more than there is to see?"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.known_clusters import record, sighting
from hansa.federation import Registry, selectors
from hansa.federation.errors import TooManyViews
from hansa.federation.inventory import Inventory
from hansa.federation.recent import Recent
from hansa.federation.streams import MOST_OF_ONE, Streams
from hansa.kernel.errors import Temporary
from hansa.messages.inventory import Change

PATIENCE = 10.0


@dataclass(frozen=True)
class Event:
    id: str
    kind: str
    data: Any


@dataclass
class Scene:
    registry: Registry
    recent: Recent
    streams: Streams
    number: int = 0

    def hear(self, ident: str, **totals: int) -> None:
        self.number += 1
        self.registry.hear(sighting(ident, self.number, totals=totals))

    def happen(self, cluster: str, detail: str) -> None:
        self.number += 1
        self.recent.learn([Change(id=self.number, at=1.0, cluster=cluster, kind="state", detail=detail)])

    def follow(self, text: str = "", last_id: str = "") -> "Reading":
        return Reading(self.streams.follow(selectors.parse(text), last_id))


class Reading:
    """One reader, who reads as much as it wants."""

    def __init__(self, stream: AsyncIterator[bytes]) -> None:
        self.stream = stream
        self.last_id = ""

    async def piece(self) -> list[Event]:
        async with asyncio.timeout(PATIENCE):
            return self._read(await anext(self.stream))

    async def until(self, enough: int) -> list[Event]:
        events: list[Event] = []
        while len(events) < enough:
            events += await self.piece()
        return events

    def _read(self, text: bytes) -> list[Event]:
        assert text.endswith(b"\n\n")
        events = []
        for block in text.decode().removesuffix("\n\n").split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            events.append(Event(fields["id"], fields["event"], msgspec.json.decode(fields["data"])))
            self.last_id = fields["id"]
        return events

    async def leave(self) -> None:
        await self.stream.aclose()  # type: ignore[attr-defined]


@pytest.fixture
def scene() -> Scene:
    return made("lubeck", "visby", "riga")


def made(*idents: str) -> Scene:
    registry, recent = Registry(), Recent()
    for ident in idents:
        registry.put(record(ident, region="eu" if ident != "riga" else "us"))
    return Scene(registry, recent, Streams(registry, Inventory(registry), recent, lambda: (5.0, 0.1)))


def seen(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.kind, event.data.get("id", event.data.get("detail"))) for event in events]


async def test_first_all_then_what_changes(scene: Scene) -> None:
    reader = scene.follow()
    (first,) = await reader.piece()
    assert (first.kind, [one["id"] for one in first.data["clusters"]]) == ("snapshot", ["lubeck", "riga", "visby"])
    scene.hear("visby", cpu=4000)
    scene.registry.drop("riga")
    events = await reader.until(2)
    assert sorted(seen(events)) == [("cluster", "visby"), ("removed", "riga")]
    assert next(one.data for one in events if one.kind == "cluster")["totals"]["cpu"] == 4000
    scene.happen("visby", "it drains")
    (last,) = await reader.piece()
    assert (last.kind, last.data["detail"]) == ("change", "it drains")


async def test_what_comes_thick_and_fast_is_told_once_and_the_newest_wins(scene: Scene) -> None:
    reader = scene.follow()
    await reader.piece()
    for cpu in range(1, 100):
        scene.hear("visby", cpu=cpu)
    (event,) = await reader.piece()
    assert event.data["totals"]["cpu"] == 99


async def test_a_heartbeat_that_changes_nothing_is_no_event(scene: Scene) -> None:
    scene.hear("visby", cpu=5)
    reader = scene.follow()
    await reader.piece()
    scene.number += 1
    scene.registry.hear(sighting("visby", scene.number, links=[]))
    scene.happen("", "something else")
    assert [event.kind for event in await reader.piece()] == ["change"]


async def test_who_comes_back_gets_only_what_was_missed(scene: Scene) -> None:
    reader = scene.follow()
    await reader.piece()
    await reader.leave()
    scene.hear("visby", cpu=1)
    scene.happen("visby", "missed")
    scene.hear("visby", cpu=2)
    scene.registry.drop("riga")
    again = scene.follow(last_id=reader.last_id)
    missed = await again.piece()
    assert sorted(one.kind for one in missed) == ["change", "cluster", "removed"]
    assert next(one for one in missed if one.kind == "cluster").data["totals"]["cpu"] == 2
    assert scene.streams.readers == 1


@pytest.mark.parametrize(
    "last_id", ["", "nonsense", "0-3", "{life}-99999999", "{life}-", "{life}-x", "{life}-" + "9" * 30]
)
async def test_who_comes_from_nowhere_begins_anew(scene: Scene, last_id: str) -> None:
    reader = scene.follow()
    await reader.piece()
    life = reader.last_id.partition("-")[0]
    (event,) = await scene.follow(last_id=last_id.replace("{life}", life)).piece()
    assert event.kind == "snapshot"


async def test_a_slow_reader_gets_the_newest_of_each_cluster(scene: Scene) -> None:
    reader, quick = scene.follow(), scene.follow()
    await reader.piece()
    await quick.piece()
    for cpu in range(1, 5):
        scene.hear("visby", cpu=cpu)
        scene.hear("lubeck", cpu=cpu)
        await quick.until(2)
    late = await reader.piece()
    assert sorted((one.kind, one.data["id"], one.data["totals"]["cpu"]) for one in late) == [
        ("cluster", "lubeck", 4),
        ("cluster", "visby", 4),
    ]


async def test_who_missed_too_much_is_shown_everything_again(scene: Scene) -> None:
    reader = scene.follow()
    await reader.piece()
    for number in range(1001):
        scene.happen("visby", f"{number}")
    (event,) = await reader.piece()
    assert event.kind == "snapshot"


async def test_a_cluster_the_selector_means_no_more_is_removed(scene: Scene) -> None:
    reader = scene.follow("state=ready region=eu")
    (first,) = await reader.piece()
    assert [one["id"] for one in first.data["clusters"]] == ["lubeck", "visby"]
    scene.hear("riga", cpu=1)  # not meant
    scene.registry.put(record("visby", region="eu", state="unreachable", version=2))
    scene.happen("riga", "not meant either")
    scene.happen("lubeck", "meant")
    events = await reader.until(2)
    assert sorted((one.kind, one.data.get("detail") or one.data["id"]) for one in events) == [
        ("change", "meant"),
        ("removed", "visby"),
    ]
    scene.registry.put(record("visby", region="eu", version=3))
    (back,) = await reader.piece()
    assert (back.kind, back.data["id"]) == ("cluster", "visby")
    scene.registry.drop("riga")
    scene.registry.drop("visby")
    (gone,) = await reader.piece()
    assert (gone.kind, gone.data["id"]) == ("removed", "visby")


async def test_coming_back_with_a_selector_tells_what_left_it(scene: Scene) -> None:
    reader = scene.follow("state=ready")
    await reader.piece()
    await reader.leave()
    scene.registry.put(record("visby", state="unreachable", version=2))
    again = scene.follow("state=ready", reader.last_id)
    assert seen(await again.piece()) == [("removed", "visby")]
    scene.registry.put(record("visby", state="degraded", version=3))
    scene.hear("lubeck", cpu=1)
    assert seen(await again.piece()) == [("cluster", "lubeck")]


async def test_every_stream_ends_when_the_process_stops(scene: Scene) -> None:
    readers = [scene.follow() for _ in range(3)]
    for reader in readers:
        await reader.piece()
    waiting = [asyncio.create_task(reader.piece()) for reader in readers]
    await asyncio.sleep(0)
    scene.streams.close()
    async with asyncio.timeout(PATIENCE):
        ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one) for one in ended] == [StopAsyncIteration] * 3
    assert scene.streams.readers == 0
    with pytest.raises(Temporary, match="stopping"):
        scene.follow()


async def test_one_person_has_so_many_and_no_more(scene: Scene) -> None:
    mine = [scene.streams.follow(person="mallory") for _ in range(MOST_OF_ONE)]
    for one in mine:
        await anext(one)
    with pytest.raises(TooManyViews, match="live views open"):
        scene.streams.follow(person="mallory")
    alices = scene.streams.follow(person="alice")
    await anext(alices)
    for one in (*mine, alices):
        await one.aclose()  # type: ignore[attr-defined]
    await anext(scene.streams.follow(person="mallory"))
    assert scene.streams._by_person == {"mallory": 1}


steps = st.lists(
    st.tuples(st.sampled_from(["hear", "state", "drop", "read", "return"]), st.sampled_from(["a", "b", "c"])),
    max_size=40,
)


@given(steps, st.sampled_from(["", "state=ready", "cpu<20m"]))
@settings(max_examples=60, deadline=None)
def test_whoever_follows_ends_up_with_the_truth(taken: list[tuple[str, str]], text: str) -> None:
    """Whatever happens between two looks, and however often the reader was away: applying the events gives what a
    fresh question gives."""
    asyncio.run(_follow_through(taken, text))


async def _follow_through(taken: list[tuple[str, str]], text: str) -> None:
    scene = made("a", "b")
    reader, mirror, version = scene.follow(text), dict[str, Any](), 1

    async def look() -> None:
        scene.happen("", "a mark")  # so that there always is something to read
        scene.streams.tell()
        for event in await reader.piece():
            if event.kind == "snapshot":
                mirror.clear()
                mirror.update({one["id"]: one for one in event.data["clusters"]})
            elif event.kind == "cluster":
                mirror[event.data["id"]] = event.data
            elif event.kind == "removed":
                mirror.pop(event.data["id"], None)

    await look()
    for what, ident in taken:
        version += 1
        known = scene.registry.get(ident)
        match what:
            case "hear" if known is not None:
                scene.hear(ident, cpu=version)
            case "state":
                state: Any = "ready" if version % 2 else "degraded"
                lives = known.record if known else record(ident)
                scene.registry.put(replace(lives, state=state, version=version))
            case "drop":
                scene.registry.drop(ident)
            case "read":
                await look()
            case "return":
                await reader.leave()
                reader = Reading(scene.streams.follow(selectors.parse(text), reader.last_id))
    await look()
    fresh = await Reading(scene.streams.follow(selectors.parse(text))).piece()
    truth = {one["id"]: one for one in fresh[0].data["clusters"]}
    assert {ident: (one["state"], one["totals"]) for ident, one in mirror.items()} == {
        ident: (one["state"], one["totals"]) for ident, one in truth.items()
    }
    await reader.leave()
    scene.streams.close()
