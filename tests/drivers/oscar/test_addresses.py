"""Does what is asked of a peer stay below its address?"""

import httpx
import pytest

from hansa.drivers.oscar import addresses
from hansa.services import peers


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_names_that_lead_elsewhere_are_not_asked_for(name: str) -> None:
    with pytest.raises(peers.PeerRefused):
        addresses.below("https://a.example", "system", "services", name)


@pytest.mark.parametrize("name", ["a/b", "a?b", "a#b", "../x", "a%2fb", "ä b"])
def test_a_name_is_one_step_of_the_path(name: str) -> None:
    url = httpx.URL(addresses.below("https://a.example/x", "job", name))
    assert url.path.split("/")[:3] == ["", "x", "job"]
    assert url.query == b""
    assert url.raw_path.count(b"/") == 3
