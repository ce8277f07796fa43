"""How far is another cluster? Asked without anything secret, and never longer than the limit."""

from collections.abc import AsyncIterator

import pytest

from drivers.oscar.rogue import Rogue
from hansa.drivers.oscar import OscarPeers
from hansa.services import peers
from hansa.settings import FederationSettings
from real.manager import free_port


@pytest.fixture
async def opened() -> AsyncIterator[OscarPeers]:
    found = OscarPeers(FederationSettings())
    try:
        yield found
    finally:
        await found.close()


async def test_an_answer_has_its_time_and_carries_no_secret(opened: OscarPeers, rogue: Rogue) -> None:
    rogue.say("/at/health", b"Ok", kind="text/plain")
    assert 0 < await opened.ping(peers.Address("visby", f"{rogue.url}/at"), 5.0) < 5
    (asked,) = rogue.got
    assert (asked.method, asked.path) == ("GET", "/at/health")
    assert not {"authorization", "cookie"} & asked.headers.keys()


@pytest.mark.parametrize(("status", "said"), [(503, "answered 503"), (302, "answered 302"), (404, "answered 404")])
async def test_only_a_plain_yes_counts(opened: OscarPeers, rogue: Rogue, status: int, said: str) -> None:
    rogue.say("/health", b"", status=status, headers={"location": "http://127.0.0.1:9/"} if status == 302 else None)
    with pytest.raises(peers.PeerUnreachable, match=said):
        await opened.ping(peers.Address("visby", rogue.url), 5.0)


async def test_one_that_hangs_is_given_up(opened: OscarPeers, rogue: Rogue) -> None:
    rogue.hang("/health")
    with pytest.raises(peers.PeerUnreachable, match=r"did not answer within 0\.2 s"):
        await opened.ping(peers.Address("visby", rogue.url), 0.2)


async def test_nobody_there(opened: OscarPeers) -> None:
    with pytest.raises(peers.PeerUnreachable, match="cannot be reached"):
        await opened.ping(peers.Address("visby", f"http://127.0.0.1:{free_port()}"), 5.0)
