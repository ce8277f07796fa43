"""Does the driver offer the whole port? The type checker reads these lines; running them is the small part."""

from hansa.drivers.oscar import OscarPeers
from hansa.kernel.federation import FederationSettings, KnownCluster
from hansa.services import peers


async def test_the_driver_offers_the_port() -> None:
    opened = OscarPeers(FederationSettings(clusters={"visby": KnownCluster(endpoint="https://visby.example.org")}))
    found: peers.Peers = opened
    peer: peers.Peer = found.find("visby")
    assert peer.address == peers.Address("visby", "https://visby.example.org")
    await opened.close()
