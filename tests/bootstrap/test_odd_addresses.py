"""A hub may tell of thousands of clusters whose addresses cannot be trusted: how much of that is in the log?"""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hansa.bootstrap.membership import Hold
from hansa.drivers.oscar import OscarPeers
from hansa.kernel.federation import FederationSettings
from hansa.messages.members import Neighbour


class Told:
    """A manager of the hub's neighbours, and nothing else."""

    def __init__(self) -> None:
        settings = SimpleNamespace(cluster=SimpleNamespace(id="lubeck"), data=SimpleNamespace(absolute=lambda: None))
        self.peers = OscarPeers(FederationSettings(), own_id="lubeck", own_endpoint="https://lubeck.example.org")
        self._hold = Hold(cast(Any, SimpleNamespace(settings=settings)), self.peers)

    async def know(self, *odd: str) -> None:
        there = _neighbour("visby", "https://visby.example.org")
        others = [_neighbour(one, f"http://{one}.example.org") for one in odd]
        await self._hold.know([there, *others])


def _neighbour(ident: str, endpoint: str) -> Neighbour:
    return Neighbour(id=ident, kind="hansa", endpoint=endpoint, verify=True, state="ready")


async def test_they_are_counted_and_a_few_are_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    told, many = Told(), [f"n{number:05}" for number in range(1000)]
    for _ in range(3):
        await told.know(*many)
    said = capsys.readouterr().out
    assert said.count("cannot be trusted") == 1
    assert "1000" in said
    assert "n00004" in said
    assert "n00005" not in said
    assert told.peers.endpoint_of("visby") == "https://visby.example.org"
    assert told.peers.endpoint_of("n00000") == ""
    await told.know("riga")
    assert "riga" in capsys.readouterr().out
    await told.know()
    await told.know("riga")
    assert "riga" in capsys.readouterr().out
    await told.peers.close()
