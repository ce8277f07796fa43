"""How far is another cluster? Asked without anything secret, and never longer than the limit."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from drivers.oscar.rogue import Rogue, rogue_server
from hansa.drivers.oscar import OscarPeers
from hansa.kernel.federation import FederationSettings, KnownCluster
from hansa.services import peers
from real.manager import free_port
from real.self_signed import self_signed


@pytest.fixture
async def opened() -> AsyncIterator[OscarPeers]:
    found = OscarPeers(FederationSettings(), own_id="lubeck", own_endpoint="http://127.0.0.1:8080")
    try:
        yield found
    finally:
        await found.close()


async def ping(opened: OscarPeers, url: str, timeout: float = 5.0) -> float:
    """Of a cluster that the hub says is there."""
    await opened.know([peers.Address("visby", url)])
    return await opened.ping("visby", timeout)


async def test_an_answer_has_its_time_and_carries_no_secret(opened: OscarPeers, rogue: Rogue) -> None:
    rogue.say("/at/health", b"Ok", kind="text/plain")
    assert 0 < await ping(opened, f"{rogue.url}/at") < 5
    (asked,) = rogue.got
    assert (asked.method, asked.path) == ("GET", "/at/health")
    assert not {"authorization", "cookie"} & asked.headers.keys()


@pytest.mark.parametrize(("status", "said"), [(503, "answered 503"), (302, "answered 302"), (404, "answered 404")])
async def test_only_a_plain_yes_counts(opened: OscarPeers, rogue: Rogue, status: int, said: str) -> None:
    rogue.say("/health", b"", status=status, headers={"location": "http://127.0.0.1:9/"} if status == 302 else None)
    with pytest.raises(peers.PeerUnreachable, match=said):
        await ping(opened, rogue.url)


async def test_one_that_hangs_is_given_up(opened: OscarPeers, rogue: Rogue) -> None:
    rogue.hang("/health")
    with pytest.raises(peers.PeerUnreachable, match=r"did not answer within 0\.2 s"):
        await ping(opened, rogue.url, 0.2)


async def test_nobody_there(opened: OscarPeers) -> None:
    with pytest.raises(peers.PeerUnreachable, match="cannot be reached"):
        await ping(opened, f"http://127.0.0.1:{free_port()}")


async def test_a_broken_tls_record_is_no_answer(tmp_path: Path) -> None:
    async with rogue_server(self_signed(tmp_path)) as secure:
        secure.spoil("/health")
        known = {"visby": KnownCluster(endpoint=secure.url, verify=False)}
        opened = OscarPeers(FederationSettings(clusters=known))
        with pytest.raises(peers.PeerUnreachable, match="cannot be reached"):
            await opened.ping("visby", 5.0)
        await opened.close()
        assert secure.paths() == ["/health"]


async def test_nobody_is_asked_at_an_address_that_is_not_trusted(rogue: Rogue) -> None:
    far = OscarPeers(FederationSettings(), own_id="lubeck", own_endpoint="https://lubeck.example.org")
    try:
        with pytest.raises(peers.UntrustedCluster, match="loopback"):
            await ping(far, rogue.url)
    finally:
        await far.close()
    assert rogue.got == []
