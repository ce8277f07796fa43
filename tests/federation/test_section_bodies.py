"""A section that nobody can read spoils nothing: neither what else its cluster says, nor the other clusters."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import msgspec
import pytest

from federation import small_federation
from federation.small_federation import join, judge, later
from hansa import bootstrap
from hansa.federation import Hub, Sighting, acting, heartbeats, section_bodies, syncing
from hansa.kernel.errors import Invalid
from hansa.messages.members import Health, Heartbeat

NO_TEXT = {
    "health": b'{"missing":["\xff"]}',
    "applied": b'{"error":"\xff"}',
    "facts": b'{"name":"\xff"}',
    "links": b'[{"target":"visby","up":true,"since":1},{"target":"\xff","up":true,"since":1}]',
    "totals": b'{"cpu":1,"\xff":1}',
    "nodes": b'[{"name":"\xff"}]',
    "something-new": b'"\xff"',
}
DECODER = msgspec.json.Decoder(Health)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with bootstrap.opened_hub(small_federation.settings(tmp_path)) as app:
        await join(app.hub, "visby")
        await join(app.hub, "riga")
        yield app.hub


@pytest.mark.parametrize(
    "body", [b'{"missing":["\xff"]}', b'{"missing":1}', b"{", b"", b'{"odd":' + b"[" * 100_000 + b"]" * 100_000 + b"}"]
)
def test_what_cannot_be_read_says_nothing(body: bytes) -> None:
    assert section_bodies.read(body, DECODER, None) is None


def test_what_can_be_read_is_read() -> None:
    assert section_bodies.read('{"missing":["Süd"],"new":1}'.encode(), DECODER, None) == Health(missing=("Süd",))


@pytest.mark.parametrize("name", NO_TEXT)
async def test_a_heartbeat_that_is_no_text_is_refused_and_changes_nothing(hub: Hub, name: str) -> None:
    known = acting.get(hub, "riga")
    before, seen = dict(known.sections), known.seen
    sections = {"totals": msgspec.Raw(b"{}"), name: msgspec.Raw(NO_TEXT[name])}
    beat = Heartbeat(incarnation=known.record.incarnation, number=9, sections=sections, whole=True)
    with pytest.raises(Invalid, match="UTF-8"):
        heartbeats.hear(hub, known, beat)
    assert (known.sections, known.seen) == (before, seen)


@pytest.mark.parametrize("name", NO_TEXT)
async def test_a_hub_starts_and_judges_with_whatever_its_database_holds(tmp_path: Path, name: str) -> None:
    async with bootstrap.opened_hub(small_federation.settings(tmp_path)) as app:
        for cluster in ("visby", "riga"):
            await join(app.hub, cluster)
        await syncing.once(app.hub)
        later_than_all = int(app.hub.clock.now() * 1000) + 1000
        said = {name: (later_than_all, NO_TEXT[name])}
        await app.hub.clusters.sighted([Sighting("riga", 1, app.hub.clock.now(), 9, said)])
    async with bootstrap.opened_hub(small_federation.settings(tmp_path)) as app:
        await small_federation.learn(app.hub)
        assert acting.get(app.hub, "riga").sections[name] == said[name]
        later(app.hub, 3600)
        await judge(app.hub)
        assert {known.record.state for known in app.hub.registry} == {"unreachable"}
        await acting.remove(app.hub, small_federation.ADMIN, "visby", force=True)
        await join(app.hub, "lubeck")
        assert {known.id for known in app.hub.registry} == {"riga", "lubeck"}


async def test_one_that_cannot_be_judged_keeps_nobody_from_being_judged(hub: Hub) -> None:
    """For a reason that nobody has thought of."""
    acting.get(hub, "riga").sections["health"] = (1, cast(bytes, None))
    later(hub, 3600)
    await judge(hub)
    assert acting.get(hub, "visby").record.state == "unreachable"
