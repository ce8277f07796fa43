"""Is nothing secret repeated, whatever a peer echoes?"""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.drivers.oscar import quoting

TEXT = "text/plain; charset=utf-8"


def test_a_reason_is_one_short_line() -> None:
    assert quoting.quote(b"no\r\n  room\x00 here ", TEXT, ()) == "no room here"
    assert len(quoting.quote(b"x" * 5000, TEXT, ())) == 300


def test_a_reason_cannot_turn_the_text_around_it() -> None:
    said = "no \u2066\u202ecitarg\u2069 \u200froom\u061c\u2028here\x9b\ufeff"
    assert quoting.quote(said.encode(), TEXT, ()) == "no citarg room here"
    assert quoting.quote(json.dumps({"detail": said + "\ud800!"}).encode(), "application/json", ()).endswith("here !")


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b'{"error":"too old"}', "application/json", "too old"),
        (b'{"type":"/problems/a","detail":"full","hint":"wait","title":"T"}', "application/problem+json", "full; wait"),
        (b'{"title":"Not Found","status":404}', "application/problem+json", "Not Found"),
        (b"<html><body>secret page</body></html>", "text/html", "a web page"),
        (b"<!DOCTYPE html>", TEXT, "a web page"),
        (b"[1,2]", "application/json", ""),
        (b"{broken", "application/json", "{broken"),
        (b"", TEXT, ""),
    ],
)
def test_shapes(body: bytes, kind: str, said: str) -> None:
    assert quoting.quote(body, kind, ()) == said


def test_what_looks_like_a_credential_is_struck_out() -> None:
    echoed = f"bad header Authorization: Bearer abc.def and {'ab12' * 16}, eyJhbGciOi.eyJzdWIi.sig https://me:pw@x.org"
    said = quoting.quote(echoed.encode(), TEXT, ())
    for secret in ("abc.def", "ab12ab12", "eyJ", "me:pw"):
        assert secret not in said


def test_a_basic_password_is_known_by_its_header() -> None:
    header = "Basic " + base64.b64encode(b"admin:sesame-opens").decode()
    assert "sesame" not in quoting.quote(b"wrong password sesame-opens", TEXT, quoting.secrets_in(header))


def test_a_short_secret_silences_the_quote() -> None:
    assert quoting.quote(b"password is abc", TEXT, ("abc",)) == ""
    assert quoting.quote(b"password is wrong", TEXT, ("abc",)) == "password is wrong"


@given(secret=st.text(min_size=1, max_size=60), around=st.text(max_size=40), repeat=st.integers(1, 20))
def test_no_secret_is_ever_repeated(secret: str, around: str, repeat: int) -> None:
    for body, kind in (
        ((around + secret) * repeat, TEXT),
        (json.dumps({"error": around + secret}), "application/json"),
        (json.dumps({"error": around + secret}), TEXT),
    ):
        said = quoting.quote(body.encode("utf-8", "replace"), kind, (secret,))
        if len(secret.strip()) >= 4 and secret.isprintable() and "*" not in secret:
            assert secret not in said
