"""Is there one form of every address, none for what two parsers could read differently, and is it safe to send to?"""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kernel import endpoints


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
        ("https://[2001:DB8:0:0::7]", "https://[2001:db8::7]"),
    ],
)
def test_one_form(url: str, form: str) -> None:
    assert endpoints.normal(url) == form
    assert endpoints.normal(form) == form


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
        "https://127.1",
        "https://127.0.0.1.",
        "https://0x7f.1",
        "https://0177.0.0.1",
        "https://2130706433",
        "https://lubeck.example.7",
        "https://[::ffff:127.0.0.1]",
        "https://[1:2]",
    ],
)
def test_what_is_not_plain_has_no_form(url: str) -> None:
    assert endpoints.normal(url) == ""


@given(st.text(alphabet="htps:/.@\\%?#[]azAZ09-_~ \n\tü", max_size=40).map(lambda rest: "https://a" + rest))
def test_the_library_goes_where_we_think(url: str) -> None:
    form = endpoints.normal(url)
    if form:
        read = httpx.URL(form)
        assert str(read) == form
        assert read.userinfo == b""
        assert form.split("/")[2].startswith(read.host)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://lubeck.example.org:8443/oscar", ""),
        ("https://10.0.0.7", ""),
        ("http://10.77.1.2:8080", ""),
        ("http://quay.lab", ""),
        ("http://lubeck", ""),
        ("http://10.78.1.2", "plain http"),
        ("http://lab", "plain http"),
        ("http://quay.lab.example.org", "plain http"),
        ("http://lubeck.example.org", "plain http"),
        ("http://127.0.0.1:8080", "loopback"),
        ("https://127.8.8.8", "loopback"),
        ("https://localhost", "loopback"),
        ("https://a.localhost", "loopback"),
        ("https://[::1]", "loopback"),
        ("https://0.0.0.0", "no cluster"),
        ("https://[::]", "no cluster"),
        ("https://169.254.169.254", "no cluster"),
        ("https://224.0.0.1", "no cluster"),
        ("https://[fe80::1]", "no cluster"),
        ("https://[64:ff9b::7f00:1]", "no cluster"),
        ("https://me:word@lubeck.example.org", "not a plain"),
        ("", "no address"),
    ],
)
def test_what_speaks_against_an_address(url: str, why: str) -> None:
    found = endpoints.objection(url, plain_http=("10.77.0.0/16", ".lab", "lubeck"))
    assert found == "" if not why else why in found


def test_on_one_machine_loopback_is_no_objection() -> None:
    for url in ("http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"):
        assert endpoints.objection(url, same_machine=True) == ""
    assert endpoints.objection("http://10.0.0.7", same_machine=True) != ""


@pytest.mark.parametrize("text", ["10.0.0.1/8", "", "*", "http://lab", "10.0.0", "a b", "0x7f.1", "-lab", "Lab"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(ValueError, match="neither a network"):
        endpoints.place(text)


def test_places() -> None:
    assert [endpoints.place(text) for text in ("10.0.0.0/8", "fd00::/8", ".lab", "lubeck.lab", "10.1.2.3")] == [
        "10.0.0.0/8",
        "fd00::/8",
        ".lab",
        "lubeck.lab",
        "10.1.2.3/32",
    ]
