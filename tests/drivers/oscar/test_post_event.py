"""Does an event reach an `endpoint` member with its own headers, and with nothing of ours?"""

from collections.abc import AsyncIterator

import pytest

from drivers.oscar.rogue import Rogue
from hansa.drivers.oscar import OscarPeers
from hansa.services import peers
from hansa.settings import FederationSettings


@pytest.fixture
async def found(rogue: Rogue) -> AsyncIterator[OscarPeers]:
    opened = OscarPeers(FederationSettings(call_timeout=4, allowed_endpoints=(rogue.url,)))
    yield opened
    await opened.close()


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
