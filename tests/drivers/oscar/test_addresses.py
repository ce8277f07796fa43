"""Is there one form of every address, and none for those that two parsers could read differently?"""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.drivers.oscar import addresses
from hansa.services import peers


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("https://Lubeck.Example.ORG", "https://lubeck.example.org"),
        ("https://lubeck.example.org:443/", "https://lubeck.example.org"),
        ("HTTP://lubeck.example.org:80", "http://lubeck.example.org"),
        ("http://lubeck.example.org:443", "http://lubeck.example.org:443"),
        ("https://lubeck.example.org/Oscar/", "https://lubeck.example.org/Oscar"),
        ("http://127.0.0.1:08080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080/a", "http://[::1]:8080/a"),
    ],
)
def test_one_form(url: str, form: str) -> None:
    assert addresses.normal(url) == form
    assert addresses.normal(form) == form


@pytest.mark.parametrize(
    "url",
    [
        "",
        "lubeck.example.org",
        "//lubeck.example.org",
        "ftp://lubeck.example.org",
        "https://",
        "https:///path",
        "https://user@lubeck.example.org",
        "https://user:pw@lubeck.example.org",
        "https://lubeck.example.org@evil.example.org",
        "https://evil.example.org\\@lubeck.example.org",
        "https://evil.example.org\\.lubeck.example.org",
        "https://lubeck.example.org%2eevil.example.org",
        "https://lubeck.example.org%00.evil.example.org",
        "https://lubeck.example.org?x=1",
        "https://lubeck.example.org/a?x",
        "https://lubeck.example.org#x",
        "https://lubeck.example.org/a/../b",
        "https://lubeck.example.org/./a",
        "https://lubeck.example.org//a",
        "https://lubeck.example.org/%2e%2e/a",
        "https://lubeck.example.org:99999",
        "https://lubeck.example.org:0",
        "https://lubeck.example.org:",
        "https://lubeck.example.org:80:80",
        " https://lubeck.example.org",
        "https://lubeck.example.org\n",
        "https://lubeck.example.org\t/x",
        "https://lübeck.example.org",
        "https://lubeck。example.org",
        "https://-lubeck.example.org",
        "https://[::1%25eth0]",
    ],
)
def test_what_is_not_plain_has_no_form(url: str) -> None:
    assert addresses.normal(url) == ""


@given(st.text(alphabet="htps:/.@\\%?#[]azAZ09-_~ \n\tü", max_size=40).map(lambda rest: "https://a" + rest))
def test_the_library_goes_where_we_think(url: str) -> None:
    form = addresses.normal(url)
    if form:
        read = httpx.URL(form)
        assert str(read) == form
        assert read.userinfo == b""
        assert form.split("/")[2].startswith(read.host)


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
