"""Does an event reach an `endpoint` member with its own headers, and with nothing of ours?"""

from collections.abc import AsyncIterator

import pytest

from drivers.oscar.rogue import Rogue
from hansa.drivers import egress
from hansa.drivers.oscar import OscarPeers
from hansa.drivers.oscar.peers import Outward
from hansa.kernel.federation import FederationSettings
from hansa.services import peers


def _through(door: egress.Door) -> Outward:
    return lambda verify, own: egress.DoorTransport(door, most=2**20, seconds=4, verify=verify, own=own)


@pytest.fixture
async def found(rogue: Rogue) -> AsyncIterator[OscarPeers]:
    door = egress.Door(egress.Rule())
    given = FederationSettings(call_timeout=4, allowed_endpoints=(rogue.url,))
    opened = OscarPeers(given, outward=_through(door))
    yield opened
    await opened.close()
    await door.close()


async def test_the_event_arrives_as_it_is(rogue: Rogue, found: OscarPeers) -> None:
    rogue.say("/hook?key=1", b"thanks")
    headers = {"Authorization": "Bearer of-the-user", "X-Mine": "1", "Host": "evil.example"}
    await found.post_event(f"{rogue.url}/hook?key=1", b"\x00event", headers, verify=True)
    (sent,) = rogue.got
    assert (sent.method, sent.path, sent.body) == ("POST", "/hook?key=1", b"\x00event")
    assert (sent.headers["authorization"], sent.headers["x-mine"]) == ("Bearer of-the-user", "1")
    assert sent.headers["host"] == rogue.url.removeprefix("http://")
    assert not any(name.startswith(("x-hansa", "x-delegated")) for name in sent.headers)
    await found.post_event(f"{rogue.url}/hook?key=1", b"", {}, verify=True)
    assert "authorization" not in rogue.got[1].headers


@pytest.mark.parametrize("status", [201, 202, 204, 400, 500])
async def test_only_200_is_success(status: int, rogue: Rogue, found: OscarPeers) -> None:
    rogue.say("/hook/secret-part", b"" if status == 204 else b"no /hook/secret-part", status, "text/plain")
    with pytest.raises(peers.PeerRefused) as refused:
        await found.post_event(f"{rogue.url}/hook/secret-part", b"", {"k": "secret-word"}, verify=True)
    assert refused.value.status == status
    assert "secret-word" not in str(refused.value)
    assert rogue.url in str(refused.value)


async def test_a_redirect_is_not_followed(rogue: Rogue, elsewhere: Rogue, found: OscarPeers) -> None:
    rogue.say("/hook", b"", 307, headers={"location": elsewhere.url})
    with pytest.raises(peers.PeerRefused, match="do not follow"):
        await found.post_event(f"{rogue.url}/hook", b"", {"Authorization": "Bearer x"}, verify=True)
    assert elsewhere.got == []


async def test_an_address_nobody_allowed_is_not_called(rogue: Rogue, elsewhere: Rogue, found: OscarPeers) -> None:
    for url in (f"{elsewhere.url}/hook", f"{rogue.url}0/hook", f"{rogue.url}.evil.example/hook", f"{rogue.url}@evil/"):
        with pytest.raises(peers.UntrustedCluster):
            await found.post_event(url, b"", {}, verify=True)
    assert rogue.got == elsewhere.got == []


async def test_it_is_bounded_in_time(rogue: Rogue, found: OscarPeers) -> None:
    rogue.drip("/hook")
    with pytest.raises(peers.PeerUnreachable):
        await found.post_event(f"{rogue.url}/hook", b"", {}, verify=True)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "hook",
        "ftp://a.example",
        "http://",
        "http://me:pw-secret@a.example/",
        "http://[::1",
        "http://a:99999/",
        "file:///etc",
    ],
)
async def test_an_address_that_is_none(url: str, found: OscarPeers) -> None:
    with pytest.raises((peers.PeerRefused, peers.UntrustedCluster)) as refused:
        await found.post_event(url, b"", {}, verify=True)
    assert "pw-secret" not in f"{refused.value} {refused.value.facts}"


async def test_an_allowed_name_that_leads_to_this_machine_is_not_called(rogue: Rogue) -> None:
    """The operator vouched for a name, and its owner has it lead elsewhere by now."""
    port = rogue.url.rpartition(":")[2]
    answers = iter([["1.1.1.1"], ["127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]])
    door = egress.Door(egress.Rule(), resolve=lambda host: next(answers))
    await door.check_url(f"http://hooks.test:{port}")
    given = FederationSettings(call_timeout=4, allowed_endpoints=(f"http://hooks.test:{port}",))
    found = OscarPeers(given, outward=_through(door))
    for _ in range(3):
        with pytest.raises(egress.EgressRefused, match=r"hooks\.test"):
            await found.post_event(f"http://hooks.test:{port}/x", b"", {}, verify=True)
    assert rogue.got == []
    await found.close()
    await door.close()


async def test_without_a_way_out_no_endpoint_is_called(rogue: Rogue) -> None:
    found = OscarPeers(FederationSettings(allowed_endpoints=(rogue.url,)))
    with pytest.raises(peers.UntrustedCluster):
        await found.post_event(f"{rogue.url}/hook", b"", {}, verify=True)
    assert rogue.got == []
    await found.close()


async def test_the_manager_itself_is_no_endpoint(rogue: Rogue) -> None:
    """Whatever it does for whoever calls it from its own machine, a tenant cannot have."""
    door = egress.Door(egress.Rule())
    found = OscarPeers(FederationSettings(), own_id="lubeck", own_endpoint=rogue.url, outward=_through(door))
    with pytest.raises(peers.UntrustedCluster):
        await found.post_event(f"{rogue.url}/job/x", b"", {}, verify=True)
    assert rogue.got == []
    await found.close()
    await door.close()
