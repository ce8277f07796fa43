"""What the driver's tests share: rogue servers, and peers opened on them with short patience."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from drivers.oscar.rogue import Rogue, rogue_server
from hansa.drivers.oscar import Limits, OscarPeer, OscarPeers
from hansa.kernel.federation import FederationSettings, KnownCluster
from hansa.services import peers

TOKEN = "token-that-stays-with-its-cluster"
OpenPeer = Callable[..., OscarPeer]


@pytest.fixture
async def rogue() -> AsyncIterator[Rogue]:
    async with rogue_server() as running:
        yield running


@pytest.fixture
async def elsewhere() -> AsyncIterator[Rogue]:
    """Where nothing should ever arrive."""
    async with rogue_server() as running:
        yield running


@pytest.fixture
def bearer() -> peers.Credentials:
    return peers.Credentials(f"Bearer {TOKEN}")


@pytest.fixture
async def open_peer() -> AsyncIterator[OpenPeer]:
    """`open_peer(url, timeout)` is the peer registered as `visby` at that address."""
    async with AsyncExitStack() as undo:

        def opened(url: str, timeout: float = 5.0, limits: Limits | None = None, verify: bool = True) -> OscarPeer:
            known = {"visby": KnownCluster(endpoint=url, verify=verify)}
            given = FederationSettings(clusters=known, call_timeout=timeout)
            found = OscarPeers(given, limits=limits)
            undo.push_async_callback(found.close)
            return found.find("visby")

        yield opened
