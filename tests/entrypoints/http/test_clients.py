"""From whom does a request come, whatever it says of itself?"""

from types import SimpleNamespace

import pytest
from starlette.requests import HTTPConnection

from hansa.entrypoints.http.clients import address_of
from hansa.settings import HttpSettings, Settings


def connection(peer: str, *forwarded: str) -> HTTPConnection:
    settings = Settings(http=HttpSettings(proxies=("127.0.0.1", "10.0.0.0/8", "fd00::/8")))
    app = SimpleNamespace(state=SimpleNamespace(hansa=SimpleNamespace(settings=settings)))
    headers = [(b"x-forwarded-for", one.encode("latin-1")) for one in forwarded]
    return HTTPConnection({"type": "http", "client": (peer, 1), "headers": headers, "app": app})


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("192.0.2.1", ["198.51.100.1"], "192.0.2.1"),  # no proxy of ours
        ("127.0.0.1", ["nonsense"], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.1,"], "127.0.0.1"),
        ("127.0.0.1", [""], "127.0.0.1"),
        ("", ["198.51.100.1"], ""),
    ],
)
def test_only_proxies_speak_for_others(peer: str, forwarded: list[str], found: str) -> None:
    assert address_of(connection(peer, *forwarded)) == found


@pytest.mark.parametrize("wrong", ["everywhere", "10.0.0.1/8", ""])
def test_networks_that_are_none_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="addresses or networks"):
        HttpSettings(proxies=(wrong,))
