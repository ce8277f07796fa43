"""Where others are told that a cluster is: as at its join, as an admin says; its own later word is a wish."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from federation import small_federation
from federation.small_federation import ADMIN, SOMEBODY
from hansa import bootstrap
from hansa.federation import Hub, acting, addressing, desired, errors, heartbeats, inventory, joining, outsiders, tokens
from hansa.identity import authority
from hansa.kernel.errors import Forbidden
from hansa.messages.clusters import Address, Facts, NewOscarCluster, NewToken
from hansa.messages.members import Heartbeat, Join, Totals

FAR = {"members_url": "https://hub.example.org:7443", "plain_http": ["10.77.0.0/16"]}
VISBY = "https://visby.example.org"
# What a member with bad intentions might say, and whether an admin could approve it.
EVIL = [
    ("https://evil.example", True),
    ("https://EVIL.example:443/a/", True),
    ("https://visby.example.org:8443", True),
    ("http://10.77.0.9:8080", True),  # of a network this hub's operator trusts
    ("http://evil.example", False),
    ("http://visby.example.org", False),
    ("http://10.78.0.9:8080", False),
    ("https://riga.example.org", False),  # another member's
    ("https://RIGA.example.org:443/", False),
    ("http://127.0.0.1:8080", False),
    ("https://127.0.0.1", False),
    ("https://localhost:22", False),
    ("https://127.1", False),
    ("https://[::1]", False),
    ("https://[::ffff:127.0.0.1]", False),
    ("https://169.254.169.254/latest/meta-data", False),
    ("https://0.0.0.0", False),
    ("https://evil.example/?to=x", False),
    ("https://evil.example/#x", False),
    ("https://visby.example.org@evil.example", False),
    ("https://evil.example\\@visby.example.org", False),
    ("https://evil.example/../x", False),
    ("https://evil.example:0", False),
    ("https://evil.example:99999", False),
    ("https://evil.example:", False),
    ("javascript:alert(1)", False),
    ("\x1b[2J https://evil.example", False),
    ("x" * 499, False),
]


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    async with bootstrap.opened_hub(small_federation.settings(tmp_path, hub=FAR)) as app:
        await small_federation.join(app.hub, "riga", endpoint="https://riga.example.org")
        await small_federation.join(app.hub, "visby", endpoint=VISBY)
        yield app.hub


async def says(hub: Hub, number: int, **facts: Any) -> None:
    """visby, or somebody with its key, in a heartbeat."""
    known = acting.get(hub, "visby")
    said = Facts(**{"name": "visby", "endpoint": VISBY, **facts})
    sections = {"facts": msgspec.Raw(msgspec.json.encode(said))}
    heartbeats.hear(hub, known, Heartbeat(incarnation=known.record.incarnation, number=number, sections=sections))
    await small_federation.judge(hub)


def told(hub: Hub) -> tuple[str, bool]:
    """What riga hears of visby."""
    (visby,) = desired.of(hub, "riga").neighbours
    return visby.endpoint, visby.verify


async def joined(hub: Hub, cluster: str, named: str, **more: Any) -> str:
    token = await tokens.create(hub, ADMIN, NewToken(cluster=cluster, **more))
    facts = Facts(name=cluster, endpoint=named, verify=False)
    request = authority.new_request(cluster).request
    await joining.join(hub, Join(token=token.token, cluster=cluster, request=request, facts=facts))
    return acting.get(hub, cluster).record.endpoint


@pytest.mark.parametrize(("endpoint", "could_be"), EVIL)
async def test_what_a_heartbeat_asks_for_nobody_is_told(hub: Hub, endpoint: str, could_be: bool) -> None:
    await says(hub, 10, endpoint=endpoint, verify=False, region="gotland")
    known = acting.get(hub, "visby")
    shown = inventory.cluster_of(known)
    assert told(hub) == (VISBY, True)
    assert (shown.facts.endpoint, shown.facts.verify, shown.facts.region) == (VISBY, True, "gotland")
    assert known.record.state == "degraded"
    assert shown.asks_for
    assert shown.asks_for in shown.reason
    assert shown.asks_for.isprintable()
    kinds = [one.kind for one in await hub.clusters.changes(cluster="visby")]
    assert sorted(kinds) == ["address", "facts", "state"]
    if could_be:
        assert (await addressing.approve(hub, ADMIN, "visby", shown.asks_for)).record.endpoint == shown.asks_for
        assert told(hub) == (shown.asks_for, True)  # its certificate is checked: only an admin can say otherwise
    else:
        with pytest.raises((errors.BadAddress, errors.AddressTaken)) as refused:
            await addressing.approve(hub, ADMIN, "visby", shown.asks_for)
        assert refused.value.hint
        assert told(hub) == (VISBY, True)


async def test_that_its_certificate_is_not_to_be_checked_is_nothing_a_member_can_say(hub: Hub) -> None:
    await says(hub, 10, verify=False)
    assert (told(hub), acting.get(hub, "visby").record.state) == ((VISBY, True), "ready")
    await addressing.put(hub, ADMIN, "visby", Address(endpoint=VISBY, verify=False))
    assert told(hub) == (VISBY, False)
    await says(hub, 11, verify=True)
    assert told(hub) == (VISBY, False)


async def test_what_was_seen_is_what_is_decided(hub: Hub) -> None:
    await says(hub, 10, endpoint="https://new.example.org")
    await says(hub, 11, endpoint="https://evil.example")  # after the admin has looked
    for decide in (addressing.approve, addressing.refuse):
        with pytest.raises(errors.NotAskedFor, match=r"evil\.example"):
            await decide(hub, ADMIN, "visby", "https://new.example.org")
        with pytest.raises(Forbidden):
            await decide(hub, SOMEBODY, "visby", "https://evil.example")
    with pytest.raises(Forbidden):
        await addressing.put(hub, SOMEBODY, "visby", Address(endpoint="https://evil.example"))
    assert told(hub) == (VISBY, True)
    await says(hub, 12)  # it asks no longer
    with pytest.raises(errors.NotAskedFor, match="no other address"):
        await addressing.approve(hub, ADMIN, "visby", "https://evil.example")
    assert acting.get(hub, "visby").record.state == "ready"


async def test_a_refusal_sticks_until_something_else_is_asked_for(hub: Hub) -> None:
    await says(hub, 10, endpoint="http://evil.example")
    await addressing.refuse(hub, ADMIN, "visby", "http://evil.example")
    await small_federation.judge(hub)
    assert acting.get(hub, "visby").record.state == "ready"
    await says(hub, 11)
    await says(hub, 12, endpoint="http://evil.example")
    assert acting.get(hub, "visby").record.state == "ready"
    assert [one.kind for one in await hub.clusters.changes(cluster="visby")].count("address") == 2
    await says(hub, 13, endpoint="http://worse.example")
    assert "worse.example" in acting.get(hub, "visby").record.reason


async def test_another_spelling_of_where_it_is_is_no_wish(hub: Hub) -> None:
    for number, same in enumerate(("https://visby.example.org/", "HTTPS://Visby.example.org:443"), 10):
        await says(hub, number, endpoint=same)
        assert acting.get(hub, "visby").record.state == "ready"
    await small_federation.mark(
        hub, "visby", endpoint="https://VISBY.example.org:443/"
    )  # from before there was one form
    await says(hub, 12)
    assert acting.get(hub, "visby").record.state == "ready"


async def test_what_an_admin_says_is_not_asked_about_again(hub: Hub) -> None:
    await addressing.put(hub, ADMIN, "visby", Address(endpoint="https://proxy.example.org/visby/"))
    assert told(hub) == ("https://proxy.example.org/visby", True)
    await says(hub, 10)  # what it always said of itself
    assert acting.get(hub, "visby").record.state == "ready"


@pytest.mark.parametrize(("endpoint", "could_be"), [one for one in EVIL if one[0].startswith("http")])
async def test_who_joins_has_only_an_address_others_may_be_sent_to(hub: Hub, endpoint: str, could_be: bool) -> None:
    try:
        found = await joined(hub, "stade", endpoint)
    except errors.BadFacts:
        assert not could_be
        return
    assert bool(found) == could_be
    record = acting.get(hub, "stade").record
    assert record.verify
    assert record.told.endpoint == endpoint  # it asks for it
    stade = next(one for one in desired.of(hub, "riga").neighbours if one.id == "stade")
    assert (stade.endpoint, stade.verify) == (found, True)


async def test_who_approves_sees_where_it_is(hub: Hub) -> None:
    await joined(hub, "stade", "https://stade.example.org", approve=False)
    assert "at https://stade.example.org" in acting.get(hub, "stade").record.reason
    known = acting.get(hub, "stade")
    sections = {"facts": msgspec.Raw(msgspec.json.encode(Facts(endpoint="https://evil.example")))}
    heartbeats.hear(hub, known, Heartbeat(incarnation=known.record.incarnation, number=1, sections=sections))
    await small_federation.judge(hub)
    assert (await joining.approve(hub, ADMIN, "stade")).record.endpoint == "https://stade.example.org"
    assert inventory.cluster_of(acting.get(hub, "stade")).asks_for == "https://evil.example"


async def test_who_takes_its_place_again_is_where_the_place_is(hub: Hub) -> None:
    """A token made for a member, and stolen, moves nobody."""
    assert await joined(hub, "visby", "https://evil.example") == VISBY
    assert inventory.cluster_of(acting.get(hub, "visby")).asks_for == "https://evil.example"
    await joining.leave(hub, "visby")
    assert await joined(hub, "visby", "https://new.example.org") == "https://new.example.org"


async def test_a_token_may_say_where_the_cluster_will_be(hub: Hub) -> None:
    for bad in ("http://stade.example.org", "https://visby.example.org"):
        with pytest.raises((errors.BadAddress, errors.AddressTaken)):
            await tokens.create(hub, ADMIN, NewToken(endpoint=bad))
    there = "https://stade.example.org"
    assert await joined(hub, "stade", "https://evil.example", endpoint=f"{there}:443/") == there
    assert inventory.cluster_of(acting.get(hub, "stade")).asks_for == "https://evil.example"
    (made,) = [one for one in await tokens.listed(hub, ADMIN) if one.used_by == "stade"]
    assert made.endpoint == there
    moved = "https://two.example.org"
    assert await joined(hub, "visby", VISBY, endpoint=moved) == moved  # also of one that takes its place again


async def test_an_oscar_cluster_is_where_the_admin_says(hub: Hub) -> None:
    class Outsiders:
        asked: list[Facts] = []

        async def ask(self, facts: Facts, login: outsiders.Login) -> Totals:
            self.asked.append(facts)
            return Totals()

        def sealed(self, cluster: str, login: outsiders.Login) -> bytes:
            return b""

        async def login(self, cluster: str) -> outsiders.Login | None:
            return None

    port = Outsiders()
    new = NewOscarCluster(id="valencia", endpoint="http://oscar.example.org", verify=False)
    with pytest.raises(errors.BadAddress):
        await outsiders.register(hub, port, ADMIN, new)
    assert port.asked == []  # no password went there
    new = msgspec.structs.replace(new, endpoint="https://oscar.example.org/")
    known = await outsiders.register(hub, port, ADMIN, new)
    assert (known.facts.endpoint, known.facts.verify) == ("https://oscar.example.org", False)
    await addressing.put(hub, ADMIN, "valencia", Address(endpoint="https://two.example.org"))
    fence = await hub.leases.hold("probes", 60)
    assert fence is not None
    await outsiders.probe_all(hub, port, fence)
    assert (port.asked[-1].endpoint, port.asked[-1].verify) == ("https://two.example.org", True)
